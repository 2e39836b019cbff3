/** Lifecycle service grants: which service may read a project's lifecycle (docs/api/identity.md). */
import { Schema } from "effect"
import { PersonId, ProjectId, ServiceGrantId } from "../BrandedIds.ts"
import { BodyInt, Text } from "../Validation/Scalars.ts"
import { AskedTime, Timestamp } from "../Wire.ts"
import { Acknowledgement, Delivery, Effective } from "./LifecycleBodies.ts"
import { DecisionReason } from "./DecisionReason.ts"

const orNull = Schema.NullOr

export const Capability = Schema.Literals(["events.read", "snapshot.read", "cursor.acknowledge", "stream.manage"])
export type Capability = typeof Capability.Type

export const LifecycleServiceProposal = Schema.Struct({
  /** The service's `client_id`. */
  service_id: Text(1, 200),
  /**
   * Null or left out: the only configured lifecycle issuer. Bounded so that an index can hold it beside `service_id`.
   */
  service_issuer: Schema.optionalKey(orNull(Text(1, 400))),
  /** Repeats are refused. */
  capabilities: Schema.Array(Capability).check(Schema.isMinLength(1), Schema.isMaxLength(4), Schema.isUnique()),
  environment: Schema.Literals(["staging", "production"]),
  /** In the future, by at most 365 days; null or left out: none. */
  expires_at: Schema.optionalKey(orNull(AskedTime)),
  reason: DecisionReason,
}).annotate({ identifier: "LifecycleServiceProposal" })
export type LifecycleServiceProposal = typeof LifecycleServiceProposal.Type

export const LifecycleServiceApproval = Schema.Struct({ expected_version: BodyInt({ min: 1 }), reason: DecisionReason })
  .annotate({ identifier: "LifecycleServiceApproval" })

export const ServiceGrantState = Schema.Literals(["proposed", "approved", "revoked", "expired"])
export type ServiceGrantState = typeof ServiceGrantState.Type

export const GrantRead = Schema.Struct({
  id: ServiceGrantId,
  project_id: ProjectId,
  service_id: Schema.String,
  service_issuer: Schema.String,
  capabilities: Schema.Array(Capability),
  environment: Schema.Literals(["staging", "production"]),
  state: ServiceGrantState,
  version: Schema.Int,
  reason: Schema.String,
  proposed_by: PersonId,
  proposed_at: Timestamp,
  approved_by: orNull(PersonId),
  approved_at: orNull(Timestamp),
  revoked_by: orNull(PersonId),
  revoked_at: orNull(Timestamp),
  expires_at: orNull(Timestamp),
  delivery: Delivery,
  acknowledgement: Acknowledgement,
  /**
   * Whether the grant gives the service access now: by a token of an accepted issuer, or by a stream that is pushed to
   * it.
   */
  effective: Effective,
}).annotate({ identifier: "GrantRead" })
export type GrantRead = typeof GrantRead.Type
