/**
 * Policy reviews (docs/requests.md): a request takes effect once a holder of each required role has approved it, each a
 * different person, none of them its author.
 */
import { Schema } from "effect"
import { InstitutionId, PersonId, PolicyReviewId, ProjectId, RequestId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { DecisionReason } from "./DecisionReason.ts"

export const Approval = Schema.Struct({ reason: DecisionReason, role: Schema.String }).annotate({
  identifier: "Approval",
})
export type Approval = typeof Approval.Type

export const PolicyReviewState = Schema.Literals(["open", "applied", "declined", "superseded"])
export type PolicyReviewState = typeof PolicyReviewState.Type

export const PolicyReview = Schema.Struct({
  review_id: PolicyReviewId,
  state: PolicyReviewState,
  required_roles: Schema.Array(Schema.String),
  approvals: Schema.Array(
    Schema.Struct({ role: Schema.String, person_id: PersonId, approved_at: Timestamp }),
  ),
}).annotate({ identifier: "PolicyReview" })
export type PolicyReview = typeof PolicyReview.Type

/** A review, as shown to persons who may act on it. */
export const ListedPolicyReview = Schema.Struct({
  ...PolicyReview.fields,
  kind: Schema.String,
  /** The request, project or enrollment under review. */
  request_id: RequestId,
  institution_id: Schema.NullOr(InstitutionId),
  project_id: Schema.NullOr(ProjectId),
  author_person_id: PersonId,
  /** The author's reason. */
  reason: Schema.String,
  /** The request's own fields, or a website as it was registered; a recipient is masked. */
  asked: Schema.Record(Schema.String, Schema.Unknown),
  created_at: Timestamp,
  /** The signer's refusal that ended the review; null where none did. */
  declined: Schema.NullOr(
    Schema.Struct({ role: Schema.String, person_id: PersonId, reason: Schema.String, declined_at: Timestamp }),
  ),
}).annotate({ identifier: "ListedPolicyReview" })

/**
 * Why a holder of a role that is still missing may not sign: the author; a signer in another role; the person whose
 * authenticators would be removed, or whose Access would be revoked; a membership that does not count now; a person who is not independent of the author
 * and the signers.
 */
export const SignerRefusal = Schema.Literals([
  "author",
  "signed",
  "own_authenticators",
  "own_access",
  "not_effective",
  "not_independent",
])
export type SignerRefusal = typeof SignerRefusal.Type

export const PolicySigners = Schema.Struct({
  /** At most 50, those who may sign first. Of operators only an operator is told. */
  people: Schema.Array(
    Schema.Struct({
      person_id: PersonId,
      /** The missing role that the person would sign in. */
      role: Schema.String,
      /** The person is an operator, in an administrator's place. */
      stands_in: Schema.Boolean,
      /** Null where the person may sign now. */
      refusal: Schema.NullOr(SignerRefusal),
    }),
  ),
  /** How many people are left out, beyond the first 50. */
  more: Schema.Int,
  /** How many operators may sign now. */
  operators: Schema.Int,
}).annotate({ identifier: "PolicySigners" })
export type PolicySigners = typeof PolicySigners.Type

/** One review, with the people who may sign it. */
export const PolicyReviewDetail = Schema.Struct({
  ...ListedPolicyReview.fields,
  /** Null where the review does not wait, and for a caller who is no sponsor or administrator any more. */
  signers: Schema.NullOr(PolicySigners),
}).annotate({ identifier: "PolicyReviewDetail" })
export type PolicyReviewDetail = typeof PolicyReviewDetail.Type

export const PolicyReviews = Schema.Struct({ items: Schema.Array(ListedPolicyReview) })
  .annotate({ identifier: "PolicyReviews" })
export type PolicyReviews = typeof PolicyReviews.Type
