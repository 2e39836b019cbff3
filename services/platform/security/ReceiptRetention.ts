/**
 * Prunes the receipts of the mail API's idempotency keys. Clients repeat a request within minutes, and an account makes
 * any number of requests, so these receipts go after a week, unlike those of decisions, which stay as long as what they
 * made.
 */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import { Database } from "../database/Database.ts"
import { prune } from "../database/Prune.ts"

/** The principal of a transfer's stop, which no account's credential authorizes but the token of its link. */
export const stopPrincipal = "stop-token"

const keptMillis = 7 * 86_400_000
const atOnce = 10_000

/**
 * Deletes them; returns how many. Those of accounts are found by the index `idempotency_receipts_of_accounts`, which has
 * their condition, and the few of stops by the primary key.
 */
export const pruneAccountReceipts = Effect.gen(function* () {
  const { sql } = yield* Database
  const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
  const pruned = (principal: Statement.Fragment) => {
    const where = sql`${principal} and created_at < ${before}`
    return prune(sql, { table: "idempotency_receipts", where, order: "created_at", batch: atOnce })
  }
  return (yield* pruned(sql`principal like 'account:%'`)) + (yield* pruned(sql`principal = ${stopPrincipal}`))
})
