import { assert, layer } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { ClockHealth, DatabaseClock } from "../../../../services/platform/database/DatabaseClock.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** A machine whose wall clock is wrong by this many milliseconds. */
const machine = (offMillis: number) =>
  Layer.effect(
    Clock.Clock,
    Effect.map(Clock.Clock, (own): Clock.Clock => ({
      currentTimeMillisUnsafe: () => own.currentTimeMillisUnsafe() + offMillis,
      currentTimeMillis: Effect.map(own.currentTimeMillis, (now) => now + offMillis),
      currentTimeNanosUnsafe: () => own.currentTimeNanosUnsafe() + BigInt(offMillis) * 1_000_000n,
      currentTimeNanos: Effect.map(own.currentTimeNanos, (now) => now + BigInt(offMillis) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => own.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: own.monotonicTimeNanos,
      sleep: (duration) => own.sleep(duration),
    })),
  )

const onMachine = <A, E, R>(offMillis: number, use: Effect.Effect<A, E, R>, everyMillis = 10_000) =>
  Effect.provide(use, Layer.fresh(DatabaseClock.layer(everyMillis).pipe(Layer.provide(machine(offMillis)))))

const databaseMillis = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ now: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as now`
  return row!.now
})

layer(TestDatabase.layer, { excludeTestServices: true })("DatabaseClock", (it) => {
  it.effect("shows the database's time, whatever the machine's clock is", () =>
    Effect.forEach([0, 5_000, -5_000, 3_600_000], (off) =>
      onMachine(
        off,
        Effect.gen(function* () {
          const before = yield* databaseMillis
          const now = yield* Clock.currentTimeMillis
          const after = yield* databaseMillis
          // Exact to the quickest of three round trips, which are slow on a busy machine.
          assert.isAtLeast(now, before - 1_000)
          assert.isAtMost(now, after + 1_000)
          const nanos = yield* Clock.currentTimeNanos
          assert.isBelow(Math.abs(Number(nanos / 1_000_000n) - now), 1_000)
          const { offsetMillis, healthy } = yield* (yield* ClockHealth).read
          assert.isBelow(Math.abs(offsetMillis + off), 1_000)
          assert.strictEqual(healthy, Math.abs(off) <= 30_000)
        }),
      )))

  it.effect("never goes back on a small correction, and sleeps for the real duration", () =>
    onMachine(
      0,
      Effect.gen(function* () {
        let last = 0
        for (let i = 0; i < 200; i++) {
          const now = yield* Clock.currentTimeMillis
          assert.isAtLeast(now, last)
          last = now
          if (i % 20 === 0) yield* Effect.sleep(5)
        }
      }),
      5,
    ))

  it.effect("does not count the wait for a connection as time on the way to the database", () =>
    Effect.gen(function* () {
      const { ownerUrl, url } = yield* TestDatabase
      const { reads, sql } = yield* Effect.map(
        Layer.build(Layer.fresh(Database.layer({ url, ownerUrl, maxConnections: 1 }))),
        Context.get(Database),
      )
      // Ten statements queue before each look, so three looks, of which the quickest counts, are done by the fortieth
      // turn.
      const turns = { taken: 0 }
      const looked = yield* Deferred.make<void>()
      const turn = Effect.andThen(
        sql`select pg_sleep(0.05)`,
        Effect.suspend(() => ++turns.taken === 45 ? Deferred.succeed(looked, undefined) : Effect.void),
      )
      const busy = Effect.forEach(Array.from({ length: 10 }), () => Effect.forever(turn), { concurrency: "unbounded" })
      const test = Effect.gen(function* () {
        yield* Effect.forkScoped(busy)
        yield* Deferred.await(looked)
        const trueNow = reads<{ now: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as now`
        const right = Effect.gen(function* () {
          const [before] = yield* trueNow
          const now = yield* Clock.currentTimeMillis
          const [after] = yield* trueNow
          return now >= before!.now - 100 && now <= after!.now + 100
        })
        // A busy machine disturbs some of the looks; an error of half the queue's time would show in all of them.
        const ever = Effect.repeat(Effect.delay(right, "20 millis"), { until: (is) => is, times: 50 })
        assert.isTrue(yield* ever)
      })
      yield* Effect.provide(
        onMachine(0, test, 1),
        Layer.succeed(Database, { reads, sql, quick: sql, wide: sql, owner: sql, owns: Effect.succeed(true) }),
      )
    }).pipe(Effect.scoped))
})
