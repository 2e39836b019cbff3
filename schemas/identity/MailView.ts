/** Outgoing mails that have not been sent, as operators see them (docs/api/identity.md). */
import { Schema } from "effect"
import { ListFilter, QueryUuid } from "../Validation/Scalars.ts"
import { Id, Timestamp } from "../Wire.ts"
import { nextAfterId } from "./AuditView.ts"
import { limitOr } from "./ListPage.ts"

const orNull = Schema.NullOr

/** `unknown`: an attempt ended without an answer, so it may have been sent. `dropped`: nothing is sent any more. */
const states = ["pending", "failed", "unknown", "sent", "dropped"] as const

export const OutgoingMail = Schema.Struct({
  id: Id,
  kind: Schema.String,
  state: Schema.Literals(states),
  /** The address with its first character and its domain alone. */
  recipient: Schema.String,
  attempts: Schema.Int,
  /** Whether an attempt is under way. */
  sending: Schema.Boolean,
  created_at: Timestamp,
  /** When the next attempt is due; null where none follows. */
  next_attempt_at: orNull(Timestamp),
  /** The server's answer to the last attempt, or the reason why there was none. */
  last_error: orNull(Schema.String),
}).annotate({ identifier: "OutgoingMail" })
export type OutgoingMail = typeof OutgoingMail.Type

export const OutgoingMailPage = Schema.Struct({ items: Schema.Array(OutgoingMail), next_after_id: nextAfterId })
  .annotate({ identifier: "OutgoingMailPage" })
export type OutgoingMailPage = typeof OutgoingMailPage.Type

export const outgoingMailQuery = {
  state: Schema.optionalKey(ListFilter(["failed", "unknown", "pending"])),
  limit: limitOr(50),
  after_id: Schema.optionalKey(QueryUuid),
}
