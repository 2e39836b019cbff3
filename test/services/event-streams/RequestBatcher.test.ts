import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Request, RequestResolver } from "effect"
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

class Caller extends Context.Reference<string>("bailiwick/test/Caller", { defaultValue: () => "nobody" }) {}

class Question extends Request.Class<{ readonly n: number }, number> {}

it.effect("Effect's RequestResolver still runs batches beside each other, in the first caller's context", () =>
  Effect.gen(function* () {
    const batches: Array<readonly [caller: string, questions: ReadonlyArray<number>]> = []
    const both = yield* Deferred.make<void>()
    const resolver = RequestResolver.make<Question>(Effect.fnUntraced(function* (entries) {
      batches.push([yield* Caller, entries.map(({ request }) => request.n)])
      if (batches.length === 2) yield* Deferred.succeed(both, undefined)
      yield* Deferred.await(both)
      for (const entry of entries) entry.completeUnsafe(Exit.succeed(entry.request.n * 10))
    }))
    const ask = (caller: string, n: number) =>
      Effect.provideService(Effect.request(new Question({ n }), resolver), Caller, caller)
    const one = yield* Effect.forkChild(ask("ada", 1))
    while (batches.length === 0) yield* Effect.yieldNow
    const rest = yield* Effect.all([ask("eve", 2), ask("bob", 3)], { concurrency: "unbounded" })
    assert.deepStrictEqual([yield* Fiber.join(one), ...rest], [10, 20, 30])
    assert.deepStrictEqual(batches, [["ada", [1]], ["eve", [2, 3]]])
  }))
