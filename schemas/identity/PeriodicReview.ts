/**
 * Periodic reviews of Access: which are overdue, and the confirmation that an Access is still needed
 * (docs/api/identity.md).
 */
import { Schema } from "effect"
import { AccessId, PersonId, ProjectId } from "../BrandedIds.ts"
import { BodyInt } from "../Validation/Scalars.ts"
import { Id, Timestamp } from "../Wire.ts"
import { DecisionReason } from "./DecisionReason.ts"

const orNull = Schema.NullOr

/** The last time that the Access version was looked at: its grant, an approved review of it, or a confirmation. */
export const LastReview = Schema.Struct({
  kind: Schema.Literals(["grant", "review", "confirmation"]),
  at: Timestamp,
  person_id: orNull(PersonId).annotate({ description: "Who approved or confirmed it; null for a grant" }),
}).annotate({ identifier: "LastAccessReview" })
export type LastReview = typeof LastReview.Type

export const OverdueReview = Schema.Struct({
  access_id: AccessId,
  access_version: Schema.Int,
  project_id: ProjectId,
  person_id: PersonId,
  display_name: orNull(Schema.String),
  role: Schema.String,
  granted_at: Timestamp,
  last_review: LastReview,
  due_at: Timestamp.annotate({ description: "365 days after the last review" }),
}).annotate({ identifier: "OverdueReview" })
export type OverdueReview = typeof OverdueReview.Type

export const OverdueReviews = Schema.Struct({
  as_of: Timestamp,
  items: Schema.Array(OverdueReview),
  next_after_id: orNull(AccessId).annotate({
    description: "The `after_id` of the next page; null on the last page. A page may be short before the last",
  }),
}).annotate({ identifier: "OverdueReviews" })
export type OverdueReviews = typeof OverdueReviews.Type

/** A decision about exactly this version of an Access. */
export const AccessVersionDecision = Schema.Struct({ expected_version: BodyInt({ min: 1 }), reason: DecisionReason })
  .annotate({ identifier: "AccessVersionDecision" })
export type AccessVersionDecision = typeof AccessVersionDecision.Type

export const AccessConfirmation = Schema.Struct({
  confirmation_id: Id,
  access_id: AccessId,
  access_version: Schema.Int,
  confirmed_by: PersonId,
  confirmed_at: Timestamp,
  due_at: Timestamp.annotate({ description: "When the next review of this version is due" }),
}).annotate({ identifier: "AccessConfirmation" })
export type AccessConfirmation = typeof AccessConfirmation.Type
