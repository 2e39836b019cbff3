/** Deletes assertions that are over and lock-outs that were not used for long; the audit keeps what they did. */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import { prune } from "../../platform/database/Prune.ts"

const assertionsKeptMillis = 3_600_000
const lockoutsKeptMillis = 30 * 86_400_000

/** Rows that one statement deletes. */
const batch = 10_000

/** Returns how many rows went. Any number of processes may run it. */
export const pruneAssertions = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  const [over, unused] = [new Date(now - assertionsKeptMillis), new Date(now - lockoutsKeptMillis)]
  const ended = { where: sql`expires_at < ${over}`, order: "expires_at", batch }
  const idle = { where: sql`changed_at < ${unused}`, order: "changed_at", batch }
  return (yield* prune(sql, { table: "authenticator_assertions", ...ended })) +
    (yield* prune(sql, { table: "authenticator_lockouts", ...idle }))
})
