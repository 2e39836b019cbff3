/** Checks the audit's months: dropped after their retention, and how much they hold. */
import { Clock, Effect } from "effect"
import { type AuditRetention, auditTable, isOver } from "../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { dayMillis, existing } from "../../services/platform/database/RangePartitions.ts"
import { ok, warn } from "./Finding.ts"

/** Maintenance runs every hour; a backup keeps it from dropping a month for as long as the backup reads. */
const patienceMillis = dayMillis

export const auditCheck = Effect.fnUntraced(function* (retention: AuditRetention) {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  const found = yield* existing(sql, auditTable)
  const over = found.filter((partition) => isOver(partition, retention, now - patienceMillis))
  const [row] = yield* sql<{ bytes: string }>`
    select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint::text as bytes from pg_inherits
    where inhparent = 'audit_records'::regclass`
  const counts = `${found.length} months, ${(Number(row!.bytes) / 1e6).toFixed(1)} MB, kept ${retention.auditDays} days`
  return over.length === 0 ? ok("audit", counts) : warn(
    "audit",
    `${counts}; ${over.length} months are older than AUDIT_RETENTION_DAYS`,
    "keep one process running with the role timers and DATABASE_OWNER_URL",
  )
})
