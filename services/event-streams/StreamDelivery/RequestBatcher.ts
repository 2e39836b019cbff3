/**
 * Batches the questions of many fibers: questions that come while a batch is under way make up the next batch. The
 * questions of a batch that fails are asked again one by one, so that no fiber fails for another's question.
 *
 * Effect's RequestResolver (4.1.0) is not used. It begins a batch whenever its delay is over, beside those under way: a
 * slow database would get more and smaller statements instead of fewer and larger ones, and two settlements could lock
 * the same rows in different orders. A batch also runs in the context of the fiber that asked first, so in that fiber's
 * transaction and span, and goes on after the scope's end. A test fails once that is otherwise.
 */
import { Deferred, Effect, Latch } from "effect"

interface Asked<Q, A, E> {
  readonly question: Q
  readonly answer: Deferred.Deferred<A, E>
}

/** `answer` returns the answers of a batch, in the order of its questions. Runs until the scope ends. */
export const together = Effect.fnUntraced(function* <Q, A, E>(
  answer: (questions: ReadonlyArray<Q>) => Effect.Effect<ReadonlyArray<A>, E>,
  options: { readonly most: number; readonly lingerMillis: number },
) {
  const waiting = Latch.makeUnsafe(false)
  let asked: Array<Asked<Q, A, E>> = []

  const one = ({ answer: to, question }: Asked<Q, A, E>) =>
    Deferred.completeWith(to, Effect.map(answer([question]), ([first]) => first!))

  const all = (batch: ReadonlyArray<Asked<Q, A, E>>) =>
    Effect.matchCauseEffect(Effect.suspend(() => answer(batch.map(({ question }) => question))), {
      onFailure: (cause) =>
        batch.length === 1
          ? Deferred.failCause(batch[0]!.answer, cause)
          : Effect.forEach(batch, one, { discard: true }),
      onSuccess: (answers) =>
        Effect.forEach(batch, (each, i) => Deferred.succeed(each.answer, answers[i]!), { discard: true }),
    })

  yield* Effect.gen(function* () {
    yield* waiting.await
    if (options.lingerMillis > 0) yield* Effect.sleep(options.lingerMillis)
    const batch = asked.slice(0, options.most)
    asked = asked.slice(options.most)
    if (asked.length === 0) waiting.closeUnsafe()
    if (batch.length > 0) yield* all(batch)
  }).pipe(Effect.forever, Effect.forkScoped)

  return (question: Q): Effect.Effect<A, E> =>
    Effect.flatMap(Deferred.make<A, E>(), (to) => {
      asked.push({ question, answer: to })
      waiting.openUnsafe()
      return Deferred.await(to)
    })
})
