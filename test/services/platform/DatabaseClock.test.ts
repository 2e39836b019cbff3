import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { Database } from "../../../services/platform/Database.ts"
import { ClockHealth, DatabaseClock } from "../../../services/platform/DatabaseClock.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A machine whose wall clock is wrong by so much. */
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
  it.effect("shows the database's time, whatever the machine's clock says", () =>
    Effect.forEach([0, 5_000, -5_000, 3_600_000], (off) =>
      onMachine(
        off,
        Effect.gen(function* () {
          const before = yield* databaseMillis
          const now = yield* Clock.currentTimeMillis
          const after = yield* databaseMillis
          assert.isAtLeast(now, before - 50)
          assert.isAtMost(now, after + 50)
          const nanos = yield* Clock.currentTimeNanos
          assert.isBelow(Math.abs(Number(nanos / 1_000_000n) - now), 1_000)
          const { offsetMillis, healthy } = yield* (yield* ClockHealth).read
          assert.isBelow(Math.abs(offsetMillis + off), 200)
          assert.strictEqual(healthy, Math.abs(off) <= 30_000)
        }),
      )))

  it.effect("never goes back by a little, and sleeps as long as it should", () =>
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
})
