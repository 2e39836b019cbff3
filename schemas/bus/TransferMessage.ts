/**
 * A message on `transfers.v1.<domain_id>.<status>`: a transfer after one of its transitions, without addresses and
 * without text that a person wrote.
 */
import { Schema } from "effect"
import { DomainTransfer } from "../mail/Transfer.ts"
import { Timestamp } from "../Wire.ts"

/** The transition; `extended` is not published. */
const TransitionName = Schema.Literals([
  "initiated",
  "accepted",
  "declined",
  "cancelled",
  "stopped",
  "expired",
  "completed",
  "forced",
  "overtaken",
  "superseded",
  "undeliverable",
])

const { note: _note, source_label: _label, target_email: _email, ...shown } = DomainTransfer.fields

export const TransferMessage = Schema.Struct({
  ...shown,
  event: TransitionName,
  /** An administrator of the platform moved the domain. */
  forced: Schema.Boolean,
  /** When the transition took place. */
  at: Timestamp,
})
export type TransferMessage = typeof TransferMessage.Type
