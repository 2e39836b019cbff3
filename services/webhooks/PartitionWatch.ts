/**
 * Checks that partitions are created in time. One process with the owner's role creates them; if that process is
 * missing for more than a day, all others warn, days before new rows go to the default partitions, where they cause
 * extra work.
 */
import { Clock, Effect } from "effect"
import { auditTable } from "../platform/observability/AuditPartitions.ts"
import { Database } from "../platform/database/Database.ts"
import { existing, isLate } from "../platform/database/RangePartitions.ts"
import { seenTable, webhookTables } from "./Partitions.ts"

/** A message with the remedy if partitions are late, or null. */
export const latePartitions = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  const late = yield* Effect.filter(
    [...webhookTables, seenTable, auditTable],
    (parent) => Effect.map(existing(sql, parent), (found) => isLate(found, parent, now)),
  )
  return late.length === 0
    ? null
    : `the next partitions of ${late.map(({ table }) => table).join(", ")} were not made: ` +
      "keep one process running with the role timers and DATABASE_OWNER_URL"
})
