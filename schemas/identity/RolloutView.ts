/** Rollouts that are held or have failed, as operators see and decide them (docs/api/identity.md). */
import { Schema } from "effect"
import { InstitutionId, ProjectId } from "../BrandedIds.ts"
import { ForeignId, Id } from "../Wire.ts"
import { nextAfterId } from "./AuditView.ts"
import { DecisionReason } from "./DecisionReason.ts"
import { Environment, ProjectState } from "./IdentityDirectory.ts"
import { limitOr } from "./ListPage.ts"

const orNull = Schema.NullOr

export const HeldRollout = Schema.Struct({
  project_id: ProjectId,
  name: Schema.String,
  website: Schema.String,
  environment: Environment,
  institution_id: InstitutionId,
  institution_name: orNull(Schema.String),
  /** `hold`: nothing new is activated. `fail`: the client is disabled, too. */
  rollout: Schema.Literals(["hold", "fail"]),
  state: ProjectState,
  version: Schema.Int,
}).annotate({ identifier: "HeldRollout" })

/** Ascending by the project's id. */
export const HeldRollouts = Schema.Struct({
  items: Schema.Array(HeldRollout),
  next_after_id: nextAfterId,
}).annotate({ identifier: "HeldRollouts" })
export type HeldRollouts = typeof HeldRollouts.Type

export const heldRolloutQuery = { limit: limitOr(50), after_id: Schema.optionalKey(ForeignId) }

export const RolloutDecision = Schema.Struct({
  action: Schema.Literals(["hold", "fail", "release"]),
  reason: DecisionReason,
}).annotate({ identifier: "RolloutDecision" })

export const RolloutStanding = Schema.Struct({
  project_id: ProjectId,
  rollout: orNull(Schema.Literals(["hold", "fail"])),
  state: ProjectState,
  version: Schema.Int,
  /** The job that disables the client; null where there is none. */
  job_id: orNull(Id),
  /** False where it stood so already. */
  changed: Schema.Boolean,
}).annotate({ identifier: "RolloutStanding" })
export type RolloutStanding = typeof RolloutStanding.Type
