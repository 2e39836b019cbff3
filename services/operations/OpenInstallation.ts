/** Opens a held installation on an operator's word, even where revocations may be lost (docs/recovery.md). */
import { Clock, Effect } from "effect"
import { Database } from "../platform/database/Database.ts"
import { forgetSupplied, type HeldReason } from "../platform/database/Installation.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"

/** Returns the epoch that was opened; null where the installation was not held. */
export const openInstallation = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  return Effect.fn("openInstallation")(function* (reason: string) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{ epoch: number; held_reason: HeldReason }>`
      select epoch, held_reason from installation where state = 'held' for update`
    if (row === undefined) return null
    yield* sql`
      update installation set state = 'open', held_since = null, held_reason = null, missing = '[]', opened_at = ${now}`
    yield* forgetSupplied(sql)
    yield* audit.append({
      action: "installation.opened",
      actor: yield* CurrentOperator,
      subject: `installation:${row.epoch}`,
      outcome: "done",
      decision: true,
      details: { reason, held_reason: row.held_reason },
    })
    return row.epoch
  }, sql.withTransaction)
})
