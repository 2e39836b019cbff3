import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../../services/platform/database/Database.ts"
import { RateLimits } from "../../../../services/platform/security/RateLimits.ts"
import { sizeOf } from "../../../support/SizeOf.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const five = (key: string) => ({ key, limit: 5, windowMillis: 60_000 })

layer(RateLimits.layer.pipe(Layer.provideMerge(TestDatabase.layer)), { excludeTestServices: true })(
  "RateLimits",
  (it) => {
    it.effect("a limit is exact under 50 concurrent takes in two processes", () =>
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

    it.effect("a window slides: each take is free again one window after it", () =>
      Effect.gen(function* () {
        const { take } = yield* RateLimits
        for (let i = 0; i < 5; i++) {
          assert.isTrue((yield* take(five("slide"))).allowed)
          yield* TestClock.adjust("10 seconds")
        }
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: false, remaining: 0, retryAfterSeconds: 10 })
        yield* TestClock.adjust("9999 millis")
        // The refused take did not count: the wait is still for the first one.
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: false, remaining: 0, retryAfterSeconds: 1 })
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* take(five("slide")), { allowed: true, remaining: 0, retryAfterSeconds: 0 })
        assert.strictEqual((yield* take(five("slide"))).retryAfterSeconds, 10)
        assert.isTrue((yield* take(five("another"))).allowed)
      }).pipe(Effect.provide(TestClock.layer())))

    const second = Effect.gen(function* () {
      const { url, ownerUrl } = yield* TestDatabase
      const built = yield* Layer.build(
        Layer.fresh(RateLimits.layer.pipe(Layer.provide(Database.layer({ url, ownerUrl, maxConnections: 8 })))),
      )
      return yield* RateLimits.pipe(Effect.provide(built))
    })
    const bucket = (key: string) => ({ key, limit: 200, windowMillis: 60_000 })

    it.effect("a bucket's tokens exist once for all processes, and refill within a window", () =>
      Effect.scoped(Effect.gen(function* () {
        const one = yield* RateLimits
        const two = yield* second
        const spent = (times: number) =>
          Effect.forEach(
            Array.from({ length: times }, (_, i) => i % 2 === 0 ? one : two),
            (limits) => limits.spend(bucket("shared")),
            { concurrency: "unbounded" },
          ).pipe(Effect.map((answers) => answers.filter((seconds) => seconds === 0).length))
        assert.strictEqual(yield* spent(400), 200)
        assert.strictEqual(yield* one.spend(bucket("shared")), 1)
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* spent(400), 100)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* spent(500), 200)
        assert.strictEqual(yield* one.spend({ key: "slow", limit: 1, windowMillis: 60_000 }), 0)
        assert.strictEqual(yield* one.spend({ key: "slow", limit: 1, windowMillis: 60_000 }), 60)
        assert.strictEqual(yield* two.spend({ key: "slow", limit: 1, windowMillis: 60_000 }), 60)
      })).pipe(Effect.provide(TestClock.layer())))

    it.effect("a request may cost several tokens, and is told when there are enough", () =>
      Effect.gen(function* () {
        const { spend } = yield* RateLimits
        const sixty = { key: "heavy", limit: 60, windowMillis: 60_000 }
        for (let i = 0; i < 3; i++) assert.strictEqual(yield* spend(sixty, 16), 0)
        assert.strictEqual(yield* spend(sixty, 16), 4)
        for (let i = 0; i < 12; i++) assert.strictEqual(yield* spend(sixty), 0)
        assert.strictEqual(yield* spend(sixty), 1)
        assert.strictEqual(yield* spend(sixty, 16), 16)
        yield* TestClock.adjust("15 seconds")
        assert.strictEqual(yield* spend(sixty, 16), 1)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* spend(sixty, 16), 0)
        // A request that costs more than a bucket holds waits for a full bucket.
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* spend(sixty, 100), 0)
        assert.strictEqual(yield* spend(sixty), 1)
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("a process reserves few tokens of a bucket it rarely uses, and writes rarely for a busy one", () =>
      Effect.gen(function* () {
        const { spend } = yield* RateLimits
        const { sql } = yield* Database
        const level = sql<{ level: number }>`select level from rate_buckets where key = 'held'`
        yield* spend(bucket("held"))
        assert.deepStrictEqual(yield* level, [{ level: 198 }])
        for (let i = 0; i < 34; i++) yield* spend(bucket("held"))
        // 2, 4, 8, 16, then 20 at a time.
        assert.deepStrictEqual(yield* level, [{ level: 150 }])
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("a process keeps buckets of at most 10,000 keys", () =>
      Effect.gen(function* () {
        const { spend } = yield* RateLimits
        const keys = Array.from({ length: 10_500 }, (_, n) => `crowd ${n}`)
        const answers = yield* Effect.forEach(keys, (key) => spend(bucket(key)), { concurrency: 64 })
        assert.isTrue(answers.every((seconds) => seconds === 0))
        assert.strictEqual(yield* sizeOf("rate limits"), 10_000)
        // A key that was dropped reserves anew.
        assert.strictEqual(yield* spend(bucket("crowd 0")), 0)
      }))

    it.effect("a key is deleted once its window is over", () =>
      Effect.gen(function* () {
        const { take, spend, prune } = yield* RateLimits
        const { sql } = yield* Database
        yield* TestClock.adjust("10 days")
        yield* take(five("old"))
        yield* spend(five("old"))
        yield* TestClock.adjust("61 seconds")
        yield* take(five("new"))
        yield* spend(five("new"))
        const rows = sql<{ key: string }>`
          select key from rate_limits where key in ('old', 'new') or key like 'more %'
          union all select key from rate_buckets where key in ('old', 'new')`
        yield* sql`insert into rate_limits
          select 'more ' || n, '{}', to_timestamp(0) from generate_series(1, 1000) n`
        yield* prune
        assert.deepStrictEqual(yield* rows, [{ key: "new" }, { key: "new" }])
      }).pipe(Effect.provide(TestClock.layer())))
  },
)
