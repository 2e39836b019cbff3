/**
 * Whether partitions are made in time. One process with the role of their owner makes them; where it is away for more than a
 * day, every other one tells, days before new rows have to go into the default partitions, where they are in the way.
 */
import { Clock, Effect } from "effect"
import { auditTable } from "../platform/observability/AuditPartitions.ts"
import { Database } from "../platform/database/Database.ts"
import { existing, isLate } from "../platform/database/RangePartitions.ts"
import { seenTable, webhookTables } from "./Partitions.ts"

/** What to do where partitions are late, or null. */
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
