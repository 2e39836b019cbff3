/**
 * Three of the four states that are kept apart (docs/api/identity.md): delivery, acknowledgement by the product, and
 * effect. They are read at each request, never stored in a receipt. The fourth, the decision, belongs to its resource.
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

/** The delivery of a decision without an event. */
export const undelivered: Delivery = {
  state: "none",
  event_id: null,
  queued_at: null,
  last_attempt_at: null,
  attempts: 0,
}
