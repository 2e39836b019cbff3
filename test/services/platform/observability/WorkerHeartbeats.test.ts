import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { WorkerHeartbeats } from "../../../../services/platform/observability/WorkerHeartbeats.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

layer(TestDatabase.layer, { excludeTestServices: true })("WorkerSightings", (it) => {
  it.effect("report a loop within a second of its start, then regularly, and its stop", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const instance = randomUUID()
      const seen = sql<{ worker: string; at: number; stopped: boolean }>`
        select worker, extract(epoch from last_seen_at)::float8 * 1000 as at, stopped from worker_sightings
        where instance = ${instance}`
      yield* TestClock.setTime(1_772_000_000_000)
      const process = yield* Scope.make()
      yield* Layer.buildWithScope(WorkerHeartbeats.layer(instance), process)
      const loop = yield* Scope.make()
      yield* Scope.provide(WorkerHeartbeats.running("a loop"), loop)
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* seen, [])
      yield* TestClock.adjust("1 millis")
      const [first] = yield* Effect.repeat(seen, { until: (rows) => rows.length > 0 })
      assert.deepStrictEqual(first, { worker: "a loop", at: 1_772_000_001_000, stopped: false })
      // The row may still be on its way; the next report comes ten seconds after the first, whenever that was.
      yield* Effect.repeat(Effect.andThen(TestClock.adjust("10 seconds"), seen), {
        until: ([row]) => row!.at > first!.at,
      })
      // Loops end before the reporting does.
      yield* Scope.close(loop, Exit.void)
      yield* Scope.close(process, Exit.void)
      const now = yield* Clock.currentTimeMillis
      assert.deepStrictEqual(yield* seen, [{ worker: "a loop", at: now, stopped: true }])
    }).pipe(Effect.provide(TestClock.layer())))
})
