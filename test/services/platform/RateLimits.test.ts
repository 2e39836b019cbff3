import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../services/platform/Database.ts"
import { RateLimits } from "../../../services/platform/RateLimits.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const five = (key: string) => ({ key, limit: 5, windowMillis: 60_000 })

layer(RateLimits.layer.pipe(Layer.provideMerge(TestDatabase.layer)), { excludeTestServices: true })(
  "RateLimits",
  (it) => {
    it.effect("is exact under 50 takes at once from two processes", () =>
      Effect.scoped(Effect.gen(function* () {
        const { url, ownerUrl } = yield* TestDatabase
        const one = yield* RateLimits
        const built = yield* Layer.build(
          Layer.fresh(RateLimits.layer.pipe(Layer.provide(Database.layer({ url, ownerUrl, maxConnections: 8 })))),
        )
        const two = yield* RateLimits.pipe(Effect.provide(built))
        const decisions = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, i) => i % 2 === 0 ? one : two),
          (limits) => limits.take(five("burst")),
          { concurrency: "unbounded" },
        )
        assert.strictEqual(decisions.filter((decision) => decision.allowed).length, 5)
        assert.sameMembers(decisions.filter((d) => d.allowed).map((d) => d.remaining), [4, 3, 2, 1, 0])
        for (const { allowed, retryAfterSeconds } of decisions) {
          assert.strictEqual(allowed, retryAfterSeconds === 0)
          assert.isAtMost(retryAfterSeconds, 60)
        }
      })))

    it.effect("slides: each take is free again one window after it", () =>
      Effect.gen(function* () {
        const { take } = yield* RateLimits
        for (let i = 0; i < 5; i++) {
          assert.isTrue((yield* take(five("slide"))).allowed)
          yield* TestClock.adjust("10 seconds")
        }
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: false, remaining: 0, retryAfterSeconds: 10 })
        yield* TestClock.adjust("9999 millis")
        // What was refused did not count: the first take is still the one that is waited for.
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: false, remaining: 0, retryAfterSeconds: 1 })
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: true, remaining: 0, retryAfterSeconds: 0 })
        assert.strictEqual((yield* take(five("slide"))).retryAfterSeconds, 10)
        assert.isTrue((yield* take(five("another"))).allowed)
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("forgets keys whose window is over", () =>
      Effect.gen(function* () {
        const { take, prune } = yield* RateLimits
        const { sql } = yield* Database
        yield* TestClock.adjust("10 days")
        yield* take(five("old"))
        yield* TestClock.adjust("61 seconds")
        yield* take(five("new"))
        const rows = sql<{ key: string }>`select key from rate_limits where key in ('old', 'new')`
        assert.isAtLeast(yield* prune, 1)
        assert.deepStrictEqual(yield* rows, [{ key: "new" }])
      }).pipe(Effect.provide(TestClock.layer())))
  },
)
