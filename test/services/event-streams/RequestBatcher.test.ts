import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { together } from "../../../services/event-streams/StreamDelivery/RequestBatcher.ts"

const now = { most: 3, lingerMillis: 0 }

it.effect("questions asked during a batch form the next one, in order and up to the batch's limit", () =>
  Effect.gen(function* () {
    const batches: Array<ReadonlyArray<number>> = []
    const first = yield* Deferred.make<void>()
    const ask = yield* together((questions: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        batches.push(questions)
        if (batches.length === 1) yield* Deferred.await(first)
        return questions.map((n) => n * 10)
      }), now)
    const one = yield* Effect.forkChild(ask(1))
    while (batches.length === 0) yield* Effect.yieldNow
    const rest = yield* Effect.forkChild(Effect.forEach([2, 3, 4, 5], ask, { concurrency: "unbounded" }))
    yield* Effect.yieldNow
    yield* Deferred.succeed(first, undefined)
    assert.strictEqual(yield* Fiber.join(one), 10)
    assert.deepStrictEqual(yield* Fiber.join(rest), [20, 30, 40, 50])
    assert.deepStrictEqual(batches, [[1], [2, 3, 4], [5]])
  }).pipe(Effect.scoped))

it.effect("a failed question fails no other question", () =>
  Effect.gen(function* () {
    const ask = yield* together(
      (questions: ReadonlyArray<number>) =>
        questions.includes(2) ? Effect.fail("two") : Effect.succeed(questions.map((n) => n * 10)),
      now,
    )
    const answers = yield* Effect.forEach([1, 2, 3], (n) => Effect.exit(ask(n)), { concurrency: "unbounded" })
    assert.deepStrictEqual(answers.map(({ _tag }) => _tag), ["Success", "Failure", "Success"])
    assert.strictEqual(yield* ask(4), 40)
  }).pipe(Effect.scoped))
