/**
 * Three of the four facts that are kept apart (docs/api/identity.md): what was queued and delivered,
 * what a product acknowledged, and what is in effect. They are read when asked, never stored in a receipt. The first of
 * the four, the decision, is its resource's own.
 */
import { Schema } from "effect"
import { Id, Timestamp } from "../Wire.ts"

const orNull = Schema.NullOr

export const Delivery = Schema.Struct({
  state: Schema.Literals(["none", "queued", "delivered", "failed", "ambiguous"]),
  event_id: orNull(Id),
  queued_at: orNull(Timestamp),
  last_attempt_at: orNull(Timestamp),
  attempts: Schema.Int,
}).annotate({ identifier: "LifecycleDelivery" })
export type Delivery = typeof Delivery.Type

export const Acknowledgement = Schema.Struct({
  state: Schema.Literals(["none", "pending", "acknowledged", "rejected"]),
  installed_version: orNull(Schema.String),
  cursor: orNull(Schema.String),
  acknowledged_at: orNull(Timestamp),
}).annotate({ identifier: "LifecycleAcknowledgement" })
export type Acknowledgement = typeof Acknowledgement.Type

export const Effective = Schema.Literals(["effective", "not_effective", "unknown"])
export type Effective = typeof Effective.Type

/** Nothing was told yet. */
export const undelivered: Delivery = {
  state: "none",
  event_id: null,
  queued_at: null,
  last_attempt_at: null,
  attempts: 0,
}
