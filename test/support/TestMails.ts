/** Outgoing mails of a kind that no process sends. */
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { Ids } from "../../services/platform/Ids.ts"

interface Outgoing {
  readonly state?: "pending" | "failed" | "unknown" | "sent"
  readonly recipient?: string
  /** Whether a process has it. */
  readonly claimed?: boolean
}

/** Adds one; returns its id. */
export const outgoingMail = Effect.fnUntraced(function* (
  { claimed = false, recipient = "alice@fern.example", state = "failed" }: Outgoing = {},
) {
  const { sql } = yield* Database
  const id = yield* (yield* Ids).next
  const now = new Date()
  const ended = state !== "pending"
  yield* sql`insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at, attempts, not_before,
      last_error, claim, lease_until)
    values (${id}::uuid, 'test.kind', 'subject', ${recipient}, '{}', ${state}, ${now}, ${ended ? now : null}, 3,
      ${ended ? null : now}, '550 5.1.1 no such user', ${claimed ? 1 : null},
      ${claimed ? new Date(now.getTime() + 3_600_000) : null})`
  return id
})
