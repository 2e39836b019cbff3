/** The lag of a project's consumers (docs/lifecycle.md). Additive: fields may be added. */
import { Schema } from "effect"
import { ProjectId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"

const orNull = Schema.NullOr
const Millis = orNull(Schema.Finite)

/** One consumer of one project. The percentiles are upper bounds of the p99 of recent events. */
export const LifecycleLag = Schema.Struct({
  project_id: ProjectId,
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
  /** Whether the consumer needs a snapshot: it cannot go on by events alone from what it has acknowledged. */
  snapshot_required: Schema.Boolean,
}).annotate({ identifier: "LifecycleLag" })
export type LifecycleLag = typeof LifecycleLag.Type

/** A cursor in the list of consumers: the consumer's `lag_events`, `project_id` and `consumer_id`, with a space between. */
export const LagCursor = Schema.String.check(
  Schema.isPattern(/^[0-9]{1,15} [A-Za-z0-9_-]{1,128} [^\p{Cc}]{3,900}$/u),
).annotate({ identifier: "LagCursor" })

export const LifecycleStream = Schema.Struct({
  stream_id: Id,
  project_id: ProjectId,
  consumer_id: Schema.String,
  delivery: Schema.Literals(["push", "poll"]),
  status: Schema.Literals(["enabled", "paused", "disabled"]),
  status_by: Schema.Literals(["receiver", "transmitter"]),
  /** Positions between the stream's progress and the head; some of them may not be for this stream. */
  lag_events: Schema.Int,
  /** Failures in a row. */
  attempts: Schema.Int,
  failing_since: orNull(Timestamp),
}).annotate({ identifier: "LifecycleStreamState" })
export type LifecycleStream = typeof LifecycleStream.Type

/**
 * A user who reads the stream on the broker itself: by the operator's permission and without a service grant, so inside
 * the trust boundary. Only the broker knows subscribers without a JetStream consumer.
 */
export const BrokerSubscriber = Schema.Struct({
  name: Schema.String,
  trust: Schema.Literal("inside"),
  pending: Schema.Int,
}).annotate({ identifier: "LifecycleBrokerSubscriber" })
export type BrokerSubscriber = typeof BrokerSubscriber.Type

/** A key of a project's event state that differs from the domain's own tables; digests or codes, no content. */
export const LifecycleDrift = Schema.Struct({
  project_id: ProjectId,
  key: Schema.String,
  expected: orNull(Schema.String),
  observed: orNull(Schema.String),
  first_seen_at: Timestamp,
}).annotate({ identifier: "LifecycleDrift" })
export type LifecycleDrift = typeof LifecycleDrift.Type
