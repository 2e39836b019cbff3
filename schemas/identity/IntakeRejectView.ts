/** Messages that could not be taken in, as operators see them (docs/api/identity.md). */
import { Schema } from "effect"
import { AccountId } from "../BrandedIds.ts"
import { ListFilter, QueryUuid } from "../Validation/Scalars.ts"
import { Id, Timestamp } from "../Wire.ts"
import { nextAfterId } from "./AuditView.ts"
import { limitOr } from "./ListPage.ts"

const orNull = Schema.NullOr

/** `waiting`: until its account is known. `resolved`: taken in by now, or discarded. */
const states = ["rejected", "waiting", "resolved"] as const

export const IntakeReject = Schema.Struct({
  id: Id,
  state: Schema.Literals(states),
  stream: Schema.String,
  stream_seq: Schema.Int,
  subject: Schema.String,
  /** A short code, and words for people that repeat no value of the message. */
  reason: Schema.String,
  detail: orNull(Schema.String),
  /** The first 2,048 bytes of the message as text. */
  raw: Schema.String,
  /** The size of what is kept of the message, in bytes: 65,536 at most. */
  bytes: Schema.Int,
  account_id: orNull(AccountId),
  received_at: Timestamp,
  /** Until when it waits for its account. */
  waits_until: orNull(Timestamp),
  /** Whether it may wait for its account once more. */
  retryable: Schema.Boolean,
}).annotate({ identifier: "IntakeReject" })
export type IntakeReject = typeof IntakeReject.Type

export const IntakeRejectPage = Schema.Struct({ items: Schema.Array(IntakeReject), next_after_id: nextAfterId })
  .annotate({ identifier: "IntakeRejectPage" })
export type IntakeRejectPage = typeof IntakeRejectPage.Type

export const intakeRejectQuery = {
  state: Schema.optionalKey(ListFilter(["rejected", "waiting"])),
  limit: limitOr(50),
  after_id: Schema.optionalKey(QueryUuid),
}
