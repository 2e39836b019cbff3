/** A keeper of partitions that is away is told of while there still are some. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AuditPartitions } from "../../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { existing } from "../../../services/platform/database/RangePartitions.ts"
import { Partitions, webhookTables } from "../../../services/webhooks/Partitions.ts"
import { latePartitions } from "../../../services/webhooks/PartitionWatch.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { dayMillis, noon, retention, stoppedClock } from "./WebhookWorld.ts"

const clock = stoppedClock()
const midnight = noon - 12 * 3_600_000

const keep = Effect.gen(function* () {
  yield* (yield* Partitions).upkeep
  yield* (yield* AuditPartitions).upkeep
})

/** What is told at a time, and whether there are partitions for rows of that time. */
const told = Effect.fnUntraced(function* (at: number) {
  const { sql } = yield* Database
  yield* clock.set(at)
  const late = yield* latePartitions
  const found = yield* existing(sql, webhookTables[0]!)
  const day = Math.floor(at / dayMillis)
  return { late: late?.match(/of (.*) were not made/)?.[1] ?? null, there: found.some(({ number }) => number === day) }
})

layer(
  Layer.merge(Partitions.layer(retention), AuditPartitions.layer({ auditDays: 400 })).pipe(
    Layer.provideMerge(Layer.fresh(TestDatabase.layer)),
    Layer.provideMerge(clock.layer),
  ),
  { excludeTestServices: true },
)("the watch over partitions", (it) => {
  it.effect("tells nothing while they are made, and two days before they run out that they are not", () =>
    Effect.gen(function* () {
      const all = "events, deliveries, attempts, seen_ids, audit_records"
      assert.deepStrictEqual(yield* told(noon), { late: all, there: false })
      yield* keep
      assert.deepStrictEqual(yield* told(noon), { late: null, there: true })
      // The keeper comes every hour: it has not been there yet when the next day begins.
      assert.deepStrictEqual(yield* told(midnight + dayMillis), { late: null, there: true })
      yield* keep
      assert.deepStrictEqual(yield* told(midnight + 3 * dayMillis - 1), { late: null, there: true })
      const days = "events, deliveries, attempts, seen_ids"
      assert.deepStrictEqual(yield* told(midnight + 3 * dayMillis), { late: days, there: true })
      assert.deepStrictEqual(yield* told(midnight + 5 * dayMillis - 1), { late: days, there: true })
      assert.deepStrictEqual(yield* told(midnight + 5 * dayMillis), { late: days, there: false })
      // Two months are made ahead.
      assert.strictEqual((yield* told(noon + 62 * dayMillis)).late, all)
      yield* keep
      assert.deepStrictEqual(yield* told(noon + 62 * dayMillis), { late: null, there: true })
    }))
})
