/**
 * Prunes the receipts of the mail API's idempotency keys. Clients repeat a request within minutes, and an account makes
 * any number of requests, so these receipts go after a week, unlike those of decisions, which stay as long as what they
 * made.
 */
import { Clock, Effect } from "effect"
import { Database } from "../database/Database.ts"
import { prune } from "../database/Prune.ts"

const keptMillis = 7 * 86_400_000
const atOnce = 10_000

/** Deletes them; returns how many. The condition is that of the index `idempotency_receipts_of_accounts`. */
export const pruneAccountReceipts = Effect.gen(function* () {
  const { sql } = yield* Database
  const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
  const where = sql`principal like 'account:%' and created_at < ${before}`
  return yield* prune(sql, { table: "idempotency_receipts", where, order: "created_at", batch: atOnce })
})
