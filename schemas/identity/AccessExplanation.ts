/** Why a person has, or had, an Access: every decision on it, and what became of each (docs/api/identity.md). */
import { Schema } from "effect"
import { AccessId, AccessReviewId, CampaignId, InstitutionId, PersonId, ProjectId, RequestId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"
import { ReviewState } from "./AccessReview.ts"
import { AccessState } from "./IdentityDirectory.ts"
import { Acknowledgement, Delivery, Effective } from "./LifecycleBodies.ts"

const orNull = Schema.NullOr

const IndependentOf = Schema.Array(PersonId).annotate({
  description: "Those whom this person had to be independent of, by the four-eyes rule, at the time of the decision",
})

export const ExplainedApproval = Schema.Struct({
  role: Schema.String,
  person_id: PersonId,
  stands_in: Schema.Boolean.annotate({ description: "An operator in an administrator's place" }),
  reason: Schema.String,
  approved_at: Timestamp,
  independent_of: IndependentOf,
}).annotate({ identifier: "ExplainedApproval" })

export const ExplainedVersion = Schema.Struct({
  access_version: Schema.Int,
  project_id: ProjectId,
  role: Schema.String,
  state: AccessState,
  created_at: Timestamp,
  made_by: orNull(PersonId).annotate({ description: "Null: the directory" }),
  approved_by: Schema.Array(PersonId),
  at_its_end: Schema.Boolean.annotate({
    description: "Whether this version revokes the Access because its end had come",
  }),
  event: Schema.Struct({ event_id: Id, digest: Schema.String }),
  delivery: Delivery,
  acknowledgement: Acknowledgement,
}).annotate({ identifier: "ExplainedVersion" })

export const ExplainedReview = Schema.Struct({
  review_id: AccessReviewId,
  access_version: Schema.Int,
  state: ReviewState,
  proposed_by: PersonId,
  proposed_at: Timestamp,
  sponsor_reason: Schema.String,
  approved_by: orNull(PersonId),
  approved_at: orNull(Timestamp),
  independent_of: IndependentOf,
  revoked_by: orNull(PersonId),
  revoked_at: orNull(Timestamp),
  expires_at: Timestamp.annotate({ description: "When it expires or expired, where nobody revokes it before" }),
}).annotate({ identifier: "ExplainedReview" })

export const ExplainedEnd = Schema.Struct({
  ends_at: orNull(Timestamp).annotate({ description: "Null: no end any more" }),
  set_at: Timestamp,
  made_by: PersonId.annotate({ description: "Who asked for it, or brought it forward" }),
  approved_by: Schema.Array(PersonId),
  reason: Schema.String,
  request_id: orNull(RequestId).annotate({
    description: "The reviewed request; null where the end was brought forward",
  }),
  access_version: orNull(Schema.Int).annotate({
    description: "The only version that it ends, by a signed revocation; null: it ends any",
  }),
}).annotate({ identifier: "ExplainedEnd" })

/** The word of one person that the Access is still needed; no review. */
export const ExplainedConfirmation = Schema.Struct({
  access_version: Schema.Int,
  person_id: PersonId,
  confirmed_at: Timestamp,
  reason: Schema.String,
  campaign_id: orNull(CampaignId).annotate({ description: "The campaign that asked; null where none did" }),
}).annotate({ identifier: "ExplainedConfirmation" })

export const AccessBlock = Schema.Literals([
  "access_revoked",
  "moved_to_another_institution",
  "person_not_active",
  "project_withdrawn",
])
export type AccessBlock = typeof AccessBlock.Type

export const AccessExplanation = Schema.Struct({
  access_id: AccessId,
  institution_id: InstitutionId,
  person_id: PersonId,
  as_of: Timestamp,
  effective: Schema.Struct({
    state: Effective,
    blocked_by: Schema.Array(AccessBlock).annotate({ description: "All reasons why it is not effective" }),
    drift: Schema.Boolean.annotate({ description: "Whether the product's event state differs from this Access" }),
  }),
  request: orNull(Schema.Struct({
    request_id: RequestId,
    person_id: PersonId,
    reason: Schema.String,
    requested_at: Timestamp,
    approvals: Schema.Array(ExplainedApproval).annotate({ description: "Oldest first" }),
  })).annotate({ description: "The request that granted it; null where the directory did" }),
  ends_at: orNull(Timestamp).annotate({
    description: "When it is revoked by itself; null: it has no end, or is revoked",
  }),
  ends: Schema.Array(ExplainedEnd).annotate({ description: "The newest 100 times that its end was set, newest first" }),
  versions: Schema.Array(ExplainedVersion).annotate({
    description: "The newest 100 versions that belong to this institution, newest first",
  }),
  reviews: Schema.Array(ExplainedReview).annotate({ description: "The newest 100 reviews, newest first" }),
  confirmations: Schema.Array(ExplainedConfirmation).annotate({
    description: "The newest 100 times that a person confirmed it in this institution, newest first",
  }),
}).annotate({ identifier: "AccessExplanation" })
export type AccessExplanation = typeof AccessExplanation.Type
