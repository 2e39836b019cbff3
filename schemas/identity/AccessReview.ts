/**
 * Reviews of Access grants (docs/api/identity.md). A receipt names the decision and exactly what it decided on; the
 * list shows whether the decision still counts, and its effect.
 */
import { Schema } from "effect"
import { AccessId, AccessReviewId, InstitutionId, PersonId, ProjectId } from "../BrandedIds.ts"
import { BodyInt } from "../Validation/Scalars.ts"
import { Id, Timestamp } from "../Wire.ts"
import { Acknowledgement, Delivery, Effective } from "./LifecycleBodies.ts"
import { DecisionReason } from "./DecisionReason.ts"

const orNull = Schema.NullOr
const Digest = Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/u)).annotate({ identifier: "Digest" })

export const GrantProposal = Schema.Struct({
  access_id: AccessId,
  access_version: BodyInt({ min: 1 }),
  /** The event that granted this version; found by the service where it is left out. */
  grant_event_id: Schema.optionalKey(orNull(Schema.String)),
  reason: DecisionReason,
}).annotate({ identifier: "GrantProposal" })
export type GrantProposal = typeof GrantProposal.Type

export const ReviewState = Schema.Literals(["proposed", "approved", "revoked"])
export type ReviewState = typeof ReviewState.Type

const ReviewedAccess = Schema.Struct({ access_id: AccessId, version: Schema.Int, digest: Digest }).annotate({
  identifier: "ReviewedAccess",
})
const SponsorDecision = Schema.Struct({
  decision_id: Id,
  person_id: PersonId,
  decided_at: Timestamp,
  digest: Digest,
  locked: Schema.Literal(true),
}).annotate({ identifier: "SponsorDecision" })
const GrantEvent = Schema.Struct({ event_id: Id, position: Schema.Int, digest: Digest })

export const GrantReceipt = Schema.Struct({
  receipt_id: Id,
  review_id: AccessReviewId,
  institution_id: InstitutionId,
  action: Schema.Literals(["propose", "approve", "revoke"]),
  state: ReviewState,
  access: ReviewedAccess,
  sponsor_decision: SponsorDecision,
  grant_event: GrantEvent,
  approval: orNull(Schema.Struct({ person_id: PersonId, approved_at: Timestamp, digest: Digest })),
  revocation: orNull(Schema.Struct({ person_id: PersonId, revoked_at: Timestamp, digest: Digest })),
  actor_person_id: PersonId,
  recorded_at: Timestamp,
  /** A review assigns nothing: always null. */
  issuer_assignment: Schema.Null,
  /** A review never changes the Access. */
  access_effect: Schema.Literal("unchanged"),
  /** The head of the review's chain of evidence, also the receipt's ETag. */
  evidence_digest: Digest,
  audit_id: Id,
}).annotate({ identifier: "GrantReceipt" })
export type GrantReceipt = typeof GrantReceipt.Type

/** The evidence of one review: an entry for each decision, which names the digest of the entry before. */
export const GrantEvidence = Schema.Struct({
  review_id: AccessReviewId,
  institution_id: InstitutionId,
  project_id: ProjectId,
  person_id: PersonId,
  state: ReviewState,
  access: ReviewedAccess,
  sponsor_decision: SponsorDecision,
  sponsor_reason: Schema.String,
  grant_event: GrantEvent,
  evidence_digest: Digest,
  whole: Schema.Boolean.annotate({
    description: "Whether each digest is that of its entry and the last one is `evidence_digest`",
  }),
  entries: Schema.Array(
    Schema.Struct({
      nth: Schema.Int,
      receipt_id: Id,
      action: Schema.Literals(["propose", "approve", "revoke"]),
      person_id: PersonId,
      at: Timestamp,
      reason: Schema.String,
      digest: Digest,
      prev_digest: Digest.annotate({ description: "Of zeros in the first entry" }),
    }).annotate({ identifier: "GrantEvidenceEntry" }),
  ).annotate({ description: "Oldest first" }),
}).annotate({ identifier: "GrantEvidence" })
export type GrantEvidence = typeof GrantEvidence.Type

export const ValidityReason = Schema.Literals([
  "access_version_superseded",
  "access_not_active",
  "sponsor_not_current",
  "membership_ended",
  "review_expired",
  "review_revoked",
])
export type ValidityReason = typeof ValidityReason.Type

export const Review = Schema.Struct({
  review_id: AccessReviewId,
  institution_id: InstitutionId,
  project_id: ProjectId,
  person_id: PersonId,
  access: ReviewedAccess,
  sponsor_decision: SponsorDecision,
  grant_event: GrantEvent,
  evidence_digest: Digest,
  state: ReviewState,
  proposed_at: Timestamp,
  sponsor_reason: Schema.String,
  decision: Schema.Struct({ state: ReviewState, at: Timestamp }),
  delivery: Delivery,
  acknowledgement: Acknowledgement,
  effective_access: Schema.Struct({ state: Effective, observed_at: orNull(Timestamp), drift: Schema.Boolean }),
  validity: Schema.Struct({ current: Schema.Boolean, reasons: Schema.Array(ValidityReason) }),
}).annotate({ identifier: "GrantReview" })
export type Review = typeof Review.Type

/** An active Access version without an open or approved review. */
export const Candidate = Schema.Struct({
  access_id: AccessId,
  access_version: Schema.Int,
  person_id: PersonId,
  project_id: ProjectId,
  role: Schema.String,
  granted_at: Timestamp,
  grant_event_id: Id,
  /**
   * Whether the caller may propose a review of it; `blocked_by` has the codes with which a proposal would be refused.
   */
  proposable: Schema.Boolean,
  blocked_by: Schema.Array(Schema.String),
}).annotate({ identifier: "GrantCandidate" })
export type Candidate = typeof Candidate.Type

export const GrantReviewList = Schema.Struct({
  institution_id: InstitutionId,
  as_of: Timestamp,
  reviews: Schema.Array(Review),
  candidates: Schema.Array(Candidate),
}).annotate({ identifier: "GrantReviewList" })
export type GrantReviewList = typeof GrantReviewList.Type
