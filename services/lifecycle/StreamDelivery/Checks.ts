/**
 * The last question before anything leaves: may this stream still be served, by us, as it was read? Asked for each POST,
 * so that nothing begins after a revocation, a pause or another endpoint has committed. Streams that ask at the same time
 * are answered by one statement.
 */
import { Deferred, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { servedStreams, type Standing } from "./Served.ts"

interface Question {
  readonly id: string
  readonly answer: Deferred.Deferred<Standing | null, SqlError.SqlError>
}

/** Asks for a stream's standing; null where it is gone. Runs until the scope ends. */
export const checks = Effect.gen(function* () {
  const { standings } = yield* servedStreams
  const asked = Latch.makeUnsafe(false)
  let questions: Array<Question> = []

  const answered = Effect.gen(function* () {
    yield* asked.await
    asked.closeUnsafe()
    const now = questions
    questions = []
    const found = yield* Effect.exit(standings([...new Set(now.map(({ id }) => id))]))
    const known = found._tag === "Success" ? new Map(found.value.map((standing) => [standing.id, standing])) : null
    for (const { answer, id } of now) {
      if (known !== null) yield* Deferred.succeed(answer, known.get(id) ?? null)
      else if (found._tag === "Failure") yield* Deferred.failCause(answer, found.cause)
    }
  })
  yield* answered.pipe(Effect.forever, Effect.forkScoped)

  return Effect.fnUntraced(function* (id: string) {
    const answer = yield* Deferred.make<Standing | null, SqlError.SqlError>()
    questions.push({ id, answer })
    asked.openUnsafe()
    return yield* Deferred.await(answer)
  })
})
