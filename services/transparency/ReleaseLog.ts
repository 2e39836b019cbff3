/**
 * Ends the hold of the transparency log on an operator's word (docs/transparency.md): the next turn compares the log with
 * the broker again, and holds it again where what is published does not fit. The word is needed where the broker has lost
 * checkpoints: the operator says that nothing was published that this database lacks.
 */
import { Effect } from "effect"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import type { HeldLogReason } from "./DecisionLog/StoredLog.ts"

/** Returns why the log was held; null where it was not. */
export const releaseLog = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  return Effect.fn("releaseLog")(function* (reason: string) {
    yield* lock(sql, "transparencyLog")
    const [head] = yield* sql<{ origin: string; held_reason: HeldLogReason }>`
      select origin, held_reason from log_head where held_reason is not null for update`
    if (head === undefined) return null
    // Without a known sequence no message can be missed; without an epoch the log is compared before it goes on.
    yield* sql`update log_head set held_reason = null, held_since = null, published_seq = 0, confirmed_epoch = null`
    yield* audit.append({
      action: "log.released",
      actor: yield* CurrentOperator,
      subject: `log:${head.origin}`,
      outcome: "done",
      decision: true,
      details: { reason, held_reason: head.held_reason },
    })
    return head.held_reason
  }, sql.withTransaction)
})
