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
}).annotate({ identifier: "ListedPolicyReview" })

export const PolicyReviews = Schema.Struct({ items: Schema.Array(ListedPolicyReview) })
  .annotate({ identifier: "PolicyReviews" })
export type PolicyReviews = typeof PolicyReviews.Type
