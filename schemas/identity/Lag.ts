/** How far consumers of a project's lifecycle are behind (docs/lifecycle.md). Additive: fields may come. */
import { Schema } from "effect"
import { Id, Timestamp } from "../Wire.ts"

const orNull = Schema.NullOr
const Millis = orNull(Schema.Finite)

/** One consumer of one project. The percentiles are upper bounds of what 99 of 100 took lately. */
export const LifecycleLag = Schema.Struct({
  project_id: Schema.String,
  consumer_id: Schema.String,
  head_position: Schema.Int,
  delivered_position: Schema.Int,
  acknowledged_position: Schema.Int,
  installed_version: orNull(Schema.String),
  oldest_unacknowledged_seconds: orNull(Schema.Finite),
  decision_to_queue_ms_p99: Millis,
  queue_to_delivery_ms_p99: Millis,
  delivery_to_ack_ms_p99: Millis,
  lag_events: Schema.Int,
  acknowledged_at: orNull(Timestamp),
  /** It has acknowledged nothing that it could go on from by events alone. */
  snapshot_required: Schema.Boolean,
}).annotate({ identifier: "LifecycleLag" })
export type LifecycleLag = typeof LifecycleLag.Type

export const LifecycleStream = Schema.Struct({
  stream_id: Id,
  project_id: Schema.String,
  consumer_id: Schema.String,
  delivery: Schema.Literals(["push", "poll"]),
  status: Schema.Literals(["enabled", "paused", "disabled"]),
  status_by: Schema.Literals(["receiver", "transmitter"]),
  /** Positions between what the stream is done with and the head; some of them may not be for it. */
  lag_events: Schema.Int,
  /** Failures in a row. */
  attempts: Schema.Int,
  failing_since: orNull(Timestamp),
}).annotate({ identifier: "LifecycleStreamState" })
export type LifecycleStream = typeof LifecycleStream.Type

/**
 * Who reads the stream on the broker itself: by the operator's permission and past every grant, so inside the trust
 * boundary. Subscribers without a consumer of JetStream are known to the broker alone.
 */
export const BrokerSubscriber = Schema.Struct({
  name: Schema.String,
  trust: Schema.Literal("inside"),
  pending: Schema.Int,
}).annotate({ identifier: "LifecycleBrokerSubscriber" })
export type BrokerSubscriber = typeof BrokerSubscriber.Type

/** A key of a project's state that is not what the domain's own tables say; digests or codes, no content. */
export const LifecycleDrift = Schema.Struct({
  project_id: Schema.String,
  key: Schema.String,
  expected: orNull(Schema.String),
  observed: orNull(Schema.String),
  first_seen_at: Timestamp,
}).annotate({ identifier: "LifecycleDrift" })
export type LifecycleDrift = typeof LifecycleDrift.Type
