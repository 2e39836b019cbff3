/** If no process creates partitions, a warning comes while some are left. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AuditPartitions } from "../../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { existing } from "../../../services/platform/database/RangePartitions.ts"
import { Partitions, webhookTables } from "../../../services/webhooks/Partitions.ts"
import { latePartitions } from "../../../services/webhooks/PartitionWatch.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { noon } from "../../support/Fixtures.ts"
import { dayMillis, retention, stoppedClock } from "./WebhookFixture.ts"

const clock = stoppedClock()
const midnight = noon - 12 * 3_600_000

const keep = Effect.gen(function* () {
  yield* (yield* Partitions).upkeep
  yield* (yield* AuditPartitions).upkeep
})

/** The warning at a time, and whether there are partitions for rows of that time. */
const warningAt = Effect.fnUntraced(function* (at: number) {
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
  it.effect("warns two days before partitions run out, and not while they are created in time", () =>
    Effect.gen(function* () {
      const all = "events, deliveries, attempts, seen_ids, audit_records"
      assert.deepStrictEqual(yield* warningAt(noon), { late: all, there: false })
      yield* keep
      assert.deepStrictEqual(yield* warningAt(noon), { late: null, there: true })
      // The upkeep runs every hour: at midnight it has not run for the new day yet.
      assert.deepStrictEqual(yield* warningAt(midnight + dayMillis), { late: null, there: true })
      yield* keep
      assert.deepStrictEqual(yield* warningAt(midnight + 3 * dayMillis - 1), { late: null, there: true })
      const days = "events, deliveries, attempts, seen_ids"
      assert.deepStrictEqual(yield* warningAt(midnight + 3 * dayMillis), { late: days, there: true })
      assert.deepStrictEqual(yield* warningAt(midnight + 5 * dayMillis - 1), { late: days, there: true })
      assert.deepStrictEqual(yield* warningAt(midnight + 5 * dayMillis), { late: days, there: false })
      // Audit partitions are created two months ahead.
      assert.strictEqual((yield* warningAt(noon + 62 * dayMillis)).late, all)
      yield* keep
      assert.deepStrictEqual(yield* warningAt(noon + 62 * dayMillis), { late: null, there: true })
    }))
})
