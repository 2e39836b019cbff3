/**
 * Problems of the identity API (docs/api/identity.md): the whole table, except the codes in HttpProblems.ts
 * (`not_found`, `rate_limited`, `internal`, `dependency_unavailable`) and IdempotencyProblems.ts, and 422, which is an
 * HTTPValidationError.
 */
import { Schema } from "effect"
import { NotFound } from "./HttpProblems.ts"
import { Problem } from "./Problem.ts"
import { Id } from "../Wire.ts"

/**
 * No token, or a token that is invalid, of a revoked session, or of a person who is unknown or not active (RFC 6750).
 */
export class InvalidToken
  extends Problem<InvalidToken>()("InvalidToken", "invalid_token", 401, "Invalid access token") {}

/** The token is valid, but the person has to sign in again (RFC 9470); `max_age` in seconds. */
export class InsufficientUserAuthentication extends Problem<InsufficientUserAuthentication>()(
  "InsufficientUserAuthentication",
  "insufficient_user_authentication",
  401,
  "A fresh or stronger sign-in is needed",
  {
    /** The values that suffice, separated by blanks. */
    acr_values: Schema.optionalKey(Schema.String),
    max_age: Schema.optionalKey(Schema.Int),
  },
) {}

export class RoleRequired
  extends Problem<RoleRequired>()("RoleRequired", "role_required", 403, "The caller lacks the role that this needs") {}

/** The caller is an auditor: no other role, of the directory or of a decision, lets the caller change anything. */
export class AuditorReadsOnly extends Problem<AuditorReadsOnly>()(
  "AuditorReadsOnly",
  "auditor_reads_only",
  403,
  "An auditor changes nothing",
) {}

export class MembershipNotActive extends Problem<MembershipNotActive>()(
  "MembershipNotActive",
  "membership_not_active",
  403,
  "The caller's membership is not active",
) {}

export class NotCurrentSponsor extends Problem<NotCurrentSponsor>()(
  "NotCurrentSponsor",
  "not_current_sponsor",
  403,
  "The caller is not a current sponsor of the institution",
) {}

/** The caller is an administrator, but not now: invited, suspended, not yet effective or expired. */
export class AdministratorNotEffective extends Problem<AdministratorNotEffective>()(
  "AdministratorNotEffective",
  "administrator_not_effective",
  403,
  "The caller is not an effective administrator of the institution",
) {}

/**
 * The caller is the same person as before, or not independent of that person: made or approved by that person within 90
 * days, or the reverse.
 */
export class FourEyesRequired extends Problem<FourEyesRequired>()(
  "FourEyesRequired",
  "four_eyes_required",
  403,
  "Another person has to do this, one who is independent of those who wrote or signed it",
) {}

export class PortalBindingMismatch extends Problem<PortalBindingMismatch>()(
  "PortalBindingMismatch",
  "portal_binding_mismatch",
  403,
  "The action was started in another portal session",
) {}

/** A rollout failed or is on hold: nothing new is activated in this project until it is released. */
export class EnvironmentHeld
  extends Problem<EnvironmentHeld>()("EnvironmentHeld", "environment_held", 403, "New activation is held") {}

/** A service grant names another environment than its project's, which is `project_environment`. */
export class EnvironmentMismatch extends Problem<EnvironmentMismatch>()(
  "EnvironmentMismatch",
  "environment_mismatch",
  409,
  "The project is in another environment",
  { project_environment: Schema.Literals(["staging", "production"]) },
) {}

export class VersionConflict
  extends Problem<VersionConflict>()("VersionConflict", "version_conflict", 409, "The version is another one by now", {
    current_version: Schema.Int,
  }) {}

export class AccessVersionSuperseded extends Problem<AccessVersionSuperseded>()(
  "AccessVersionSuperseded",
  "access_version_superseded",
  409,
  "The Access has a newer version",
) {}

export class AccessNotActive
  extends Problem<AccessNotActive>()("AccessNotActive", "access_not_active", 409, "The Access is not active") {}

export class GrantEventMismatch extends Problem<GrantEventMismatch>()(
  "GrantEventMismatch",
  "grant_event_mismatch",
  409,
  "The grant Event is not the one of this Access version",
) {}

export class ReviewExists extends Problem<ReviewExists>()(
  "ReviewExists",
  "review_exists",
  409,
  "This Access version has an open or approved review",
) {}

/** `allowed` are the states in which the command is possible. */
export class InvalidState
  extends Problem<InvalidState>()("InvalidState", "invalid_state", 409, "Not possible in the present state", {
    state: Schema.String,
    allowed: Schema.Array(Schema.String),
  }) {}

export class LastOwner
  extends Problem<LastOwner>()("LastOwner", "last_owner", 409, "A project keeps at least one active owner") {}

export class PersonExists
  extends Problem<PersonExists>()("PersonExists", "person_exists", 409, "The identity belongs to a person already") {}

export class CursorAhead
  extends Problem<CursorAhead>()("CursorAhead", "cursor_ahead", 409, "The cursor is ahead of the history") {}

/** The history was restored, or the cursor is invalid: take a snapshot. */
export class CursorEpochChanged extends Problem<CursorEpochChanged>()(
  "CursorEpochChanged",
  "cursor_epoch_changed",
  409,
  "The cursor is of another epoch",
) {}

export class InstalledVersionMismatch extends Problem<InstalledVersionMismatch>()(
  "InstalledVersionMismatch",
  "installed_version_mismatch",
  409,
  "Another version is installed",
) {}

export class ChainMismatch
  extends Problem<ChainMismatch>()("ChainMismatch", "chain_mismatch", 409, "The chain head is another one") {}

export class ProofConsumed
  extends Problem<ProofConsumed>()("ProofConsumed", "proof_consumed", 409, "The proof was used already") {}

export class WebsiteExists extends Problem<WebsiteExists>()(
  "WebsiteExists",
  "website_exists",
  409,
  "The institution has this website in this environment already",
) {}

/** A merge of two persons who took part in the same decision. */
export class FourEyesCollapsed extends Problem<FourEyesCollapsed>()(
  "FourEyesCollapsed",
  "four_eyes_collapsed",
  409,
  "Both identities took part in one decision",
) {}

export class OwnerNotActive
  extends Problem<OwnerNotActive>()("OwnerNotActive", "owner_not_active", 409, "The owner is not an active person") {}

export class RequestExists
  extends Problem<RequestExists>()("RequestExists", "request_exists", 409, "The same request is open already") {}

export class PreviewChanged
  extends Problem<PreviewChanged>()("PreviewChanged", "preview_changed", 409, "The preview is another one by now") {}

export class LaunchUrlUnverified extends Problem<LaunchUrlUnverified>()(
  "LaunchUrlUnverified",
  "launch_url_unverified",
  409,
  "The launch URL lies under no verified domain of the institution",
) {}

export class IntentExpired
  extends Problem<IntentExpired>()("IntentExpired", "intent_expired", 410, "The time to complete the action is over") {}

export class ProofExpired
  extends Problem<ProofExpired>()("ProofExpired", "proof_expired", 410, "The time to use the proof is over") {}

/** The cursor is older than the kept events: take a snapshot. */
export class CursorExpired
  extends Problem<CursorExpired>()("CursorExpired", "cursor_expired", 410, "The cursor is older than what is kept") {}

/** `If-Match` names evidence that is not the present one. */
export class PreconditionFailed extends Problem<PreconditionFailed>()(
  "PreconditionFailed",
  "precondition_failed",
  412,
  "What was seen is not what stands now",
) {}

/**
 * The installation is held after a restore or a fail-over. `retry_after` in whole seconds, repeated as `Retry-After`.
 */
export class Held extends Problem<Held>()("Held", "held", 503, "The operation is held", { retry_after: Schema.Int }) {}

/** The provider may have carried the job out: poll the job, and do not send the request again blindly. */
export class OutcomeUnknown
  extends Problem<OutcomeUnknown>()("OutcomeUnknown", "outcome_unknown", 504, "The outcome is not known yet", {
    job_id: Id,
  }) {}

/** The problems of any operation within an institution that needs a role. */
export const roleProblems = [
  NotFound,
  RoleRequired,
  MembershipNotActive,
  NotCurrentSponsor,
  AdministratorNotEffective,
] as const
