/** Messages that the intake could not take. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../services/platform/database/Database.ts"

interface Rejected {
  /** The account that it waited for; by default none. */
  readonly accountId?: string
  readonly state?: "rejected" | "waiting" | "resolved"
  readonly payload?: string
  readonly receivedAt?: Date
}

/** Adds one; returns its id. */
export const intakeReject = Effect.fnUntraced(function* (
  { accountId, payload = `{"type":"email.sent"}`, receivedAt = new Date(), state = "rejected" }: Rejected = {},
) {
  const { sql } = yield* Database
  const id = randomUUID()
  yield* sql`insert into intake_rejects (id, stream, stream_seq, subject, reason, detail, payload, account_id, state,
      received_at, expires_at)
    values (${id}::uuid, 'EVENTS', 7, 'events.v1.email.sent', ${
    accountId === undefined ? "malformed" : "unknown_account"
  },
      null, ${Buffer.from(payload)}, ${accountId ?? null}, ${state}, ${receivedAt},
      ${state === "waiting" ? new Date(receivedAt.getTime() + 86_400_000) : null})`
  return id
})
