/** The keys that sign lifecycle messages, as operators see and move them (docs/api/identity.md). */
import { Schema } from "effect"
import { BodyBooleanOr } from "../Validation/Scalars.ts"
import { AskedTime, Timestamp } from "../Wire.ts"
import { DecisionReason } from "./DecisionReason.ts"

/** A transition from the active key to the next one. */
const KeyTransition = Schema.Struct({
  successor: Schema.String,
  /** No project switches before. */
  not_before: Timestamp,
  /** No consumer is waited for any longer. */
  deadline_at: Timestamp,
  /** Projects that have not been told of it. */
  untold: Schema.Int,
  switched: Schema.Int,
  /** Projects that still have to switch. */
  left: Schema.Int,
  /** Some of the projects that wait for a consumer, and the consumers that have not acknowledged. */
  waiting: Schema.Array(Schema.Struct({ project_id: Schema.String, consumers: Schema.Array(Schema.String) })),
}).annotate({ identifier: "KeyTransition" })

export const SigningKeyRing = Schema.Struct({
  /** In the order in which they follow each other; none before the first message makes them. */
  items: Schema.Array(Schema.Struct({
    kid: Schema.String,
    state: Schema.Literals(["announced", "published", "active", "retiring", "retired", "compromised"]),
    /** When the key came into its state. */
    since: Timestamp,
    /** The number of projects that it signs for. */
    projects: Schema.Int,
  })),
  /** The kids that a product which connects for the first time is given, in this order. */
  pins: Schema.Array(Schema.String),
  /** Null where none is under way. */
  transition: Schema.NullOr(KeyTransition),
}).annotate({ identifier: "SigningKeyRing" })
export type SigningKeyRing = typeof SigningKeyRing.Type

export const KeyAnnouncement = Schema.Struct({
  reason: DecisionReason,
  /** No project switches before; by default a day from now. */
  not_before: Schema.optionalKey(Schema.NullOr(AskedTime)),
}).annotate({ identifier: "KeyAnnouncement" })

export const KeyActivation = Schema.Struct({
  reason: DecisionReason,
  /** Waits for no consumer: those that are late need a snapshot. */
  force: BodyBooleanOr(false),
}).annotate({ identifier: "KeyActivation" })
