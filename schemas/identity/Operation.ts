/** Background jobs and their state (docs/api/identity.md). */
import { Schema } from "effect"
import { ProjectId, ProviderJobId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { BrokerSubscriber, LifecycleDrift, LifecycleLag, LifecycleStream } from "./LagReport.ts"

const orNull = Schema.NullOr

export const JobState = Schema.Literals(["pending", "running", "effective", "failed", "ambiguous"])
export type JobState = typeof JobState.Type

/** A job without payload or secret. */
const job = {
  job_id: ProviderJobId,
  kind: Schema.String,
  project_id: orNull(ProjectId),
  state: JobState,
  attempts: Schema.Int,
  max_attempts: Schema.Int,
  next_attempt_at: orNull(Timestamp),
  last_error_code: orNull(Schema.String),
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const Job = Schema.Struct(job).annotate({ identifier: "Job" })
export type Job = typeof Job.Type

export const AllowedAction = Schema.Literals(["reconcile", "reviewed_retry", "reviewed_repair"])
export type AllowedAction = typeof AllowedAction.Type

export const AmbiguousJob = Schema.Struct({
  ...job,
  provider_reference: Schema.String,
  target_state: Schema.Record(Schema.String, Schema.Unknown),
  allowed_actions: Schema.Array(AllowedAction),
}).annotate({ identifier: "AmbiguousJob" })
export type AmbiguousJob = typeof AmbiguousJob.Type

export const Jobs = Schema.Struct({ items: Schema.Array(Job) }).annotate({ identifier: "Jobs" })

export const OperationsSummary = Schema.Struct({
  pending: Schema.Int,
  failed: Schema.Int,
  failure_diagnostics_available: Schema.Boolean,
  status: Schema.Literals(["failed", "pending", "effective"]),
}).annotate({ identifier: "OperationsSummary" })
export type OperationsSummary = typeof OperationsSummary.Type

export const Diagnostics = Schema.Struct({
  as_of: Timestamp,
  /** `held` after a restore or a fail-over: nothing new takes effect until the losses are dealt with. */
  installation: Schema.Struct({
    epoch: Schema.Int,
    state: Schema.Literals(["open", "held"]),
    held_since: orNull(Timestamp),
    held_reason: orNull(Schema.String),
  }),
  failed: Schema.Array(Job),
  ambiguous: Schema.Array(AmbiguousJob),
  workers: Schema.Array(Schema.Struct({
    worker: Schema.String,
    instance: Schema.String,
    last_seen_at: Timestamp,
    state: Schema.Literals(["running", "stale", "stopped"]),
    backlog: orNull(Schema.Int),
  })),
  client_drift: Schema.Array(Schema.Struct({
    project_id: ProjectId,
    client_id: Schema.String,
    field: Schema.String,
    expected_digest: Schema.String,
    observed_digest: Schema.String,
    first_seen_at: Timestamp,
  })),
  lifecycle_lag: Schema.Array(LifecycleLag),
  lifecycle_streams: Schema.Array(LifecycleStream),
  lifecycle_drift: Schema.Array(LifecycleDrift),
  /** Null where the broker does not answer; empty for a single project, since subscribers read all projects. */
  lifecycle_broker_subscribers: orNull(Schema.Array(BrokerSubscriber)),
}).annotate({ identifier: "Diagnostics" })
export type Diagnostics = typeof Diagnostics.Type
