/** Campaigns: until a deadline, those who answer for a set of Accesses say whether each is still needed (docs/api/identity.md). */
import { Schema } from "effect"
import {
  AccessId,
  CampaignId,
  CampaignItemId,
  InstitutionId,
  PersonId,
  PolicyReviewId,
  ProjectId,
  RequestId,
} from "../BrandedIds.ts"
import { BodyBoolean, Text } from "../Validation/Scalars.ts"
import { AskedTime, Id, Timestamp } from "../Wire.ts"
import { DecisionReason } from "./DecisionReason.ts"

const orNull = Schema.NullOr

/** Which Accesses: each member narrows; without any of them every active Access of the institution. */
export const CampaignCreate = Schema.Struct({
  name: Text(1, 100),
  reason: DecisionReason,
  deadline: AskedTime.annotate({ description: "In the future, at most 366 days ahead" }),
  access_ids: Schema.optionalKey(Schema.Array(AccessId).check(Schema.isMinLength(1), Schema.isMaxLength(1_000))),
  project_ids: Schema.optionalKey(Schema.Array(ProjectId).check(Schema.isMinLength(1), Schema.isMaxLength(100))),
  overdue: Schema.optionalKey(BodyBoolean.annotate({ description: "Only Access whose review is overdue" })),
}).annotate({ identifier: "CampaignCreate" })
export type CampaignCreate = typeof CampaignCreate.Type

export const CampaignReschedule = Schema.Struct({
  deadline: AskedTime.annotate({ description: "In the future, at most 366 days after the opening" }),
  reason: DecisionReason,
}).annotate({ identifier: "CampaignReschedule" })
export type CampaignReschedule = typeof CampaignReschedule.Type

export const CampaignAnswer = Schema.Struct({
  answer: Schema.Literals(["confirm", "propose_revocation"]),
  reason: DecisionReason,
}).annotate({ identifier: "CampaignAnswer" })
export type CampaignAnswer = typeof CampaignAnswer.Type

export const CampaignDelegation = Schema.Struct({
  person_id: orNull(PersonId).annotate({ description: "A member of the institution; null: nobody any more" }),
  reason: DecisionReason,
}).annotate({ identifier: "CampaignDelegation" })
export type CampaignDelegation = typeof CampaignDelegation.Type

export const Campaign = Schema.Struct({
  campaign_id: CampaignId,
  institution_id: InstitutionId,
  name: Schema.String,
  reason: Schema.String,
  state: Schema.Literals(["open", "closed"]).annotate({ description: "`closed` also where its deadline has come" }),
  opened_by: PersonId,
  opened_at: Timestamp,
  deadline: Timestamp,
  closed: orNull(Schema.Struct({ person_id: PersonId, at: Timestamp, reason: Schema.String })).annotate({
    description: "Null where nobody closed it",
  }),
}).annotate({ identifier: "Campaign" })
export type Campaign = typeof Campaign.Type

/**
 * `withdrawn`: the Access was revoked, or has another version, before an answer. `unanswered`: the campaign ended
 * first.
 */
export const CampaignItemState = Schema.Literals([
  "open",
  "confirmed",
  "proposed_for_revocation",
  "withdrawn",
  "unanswered",
])
export type CampaignItemState = typeof CampaignItemState.Type

export const CampaignDetail = Schema.Struct({
  ...Campaign.fields,
  items: Schema.Struct({
    total: Schema.Int,
    open: Schema.Int,
    confirmed: Schema.Int,
    proposed_for_revocation: Schema.Int,
    withdrawn: Schema.Int,
    unanswered: Schema.Int,
  }),
}).annotate({ identifier: "CampaignDetail" })
export type CampaignDetail = typeof CampaignDetail.Type

export const Campaigns = Schema.Struct({ items: Schema.Array(Campaign) }).annotate({ identifier: "Campaigns" })
export type Campaigns = typeof Campaigns.Type

export const CampaignItem = Schema.Struct({
  item_id: CampaignItemId,
  campaign_id: CampaignId,
  access_id: AccessId,
  access_version: Schema.Int,
  project_id: ProjectId,
  person_id: PersonId.annotate({ description: "Whose Access it is" }),
  display_name: orNull(Schema.String),
  role: Schema.String,
  state: CampaignItemState,
  delegate_person_id: orNull(PersonId),
  answer: orNull(Schema.Struct({ person_id: PersonId, at: Timestamp, reason: Schema.String })),
  confirmation_id: orNull(Id),
  revocation: orNull(Schema.Struct({
    request_id: RequestId,
    review_id: orNull(PolicyReviewId),
    state: Schema.Literals(["submitted", "approved", "declined", "expired"]),
  })).annotate({ description: "The proposal that an administrator decides" }),
}).annotate({ identifier: "CampaignItem" })
export type CampaignItem = typeof CampaignItem.Type

export const CampaignItems = Schema.Struct({ items: Schema.Array(CampaignItem) }).annotate({
  identifier: "CampaignItems",
})
export type CampaignItems = typeof CampaignItems.Type

/** An item that waits for the caller's answer. */
export const OwnCampaignItem = Schema.Struct({
  item_id: CampaignItemId,
  campaign_id: CampaignId,
  campaign_name: Schema.String,
  deadline: Timestamp,
  institution_id: InstitutionId,
  institution_name: Schema.String,
  access_id: AccessId,
  access_version: Schema.Int,
  project_id: ProjectId,
  project_name: Schema.String,
  person_id: PersonId,
  display_name: orNull(Schema.String),
  role: Schema.String,
  granted_at: Timestamp,
  delegate_person_id: orNull(PersonId),
}).annotate({ identifier: "OwnCampaignItem" })
export type OwnCampaignItem = typeof OwnCampaignItem.Type

export const OwnCampaignItems = Schema.Struct({ items: Schema.Array(OwnCampaignItem) }).annotate({
  identifier: "OwnCampaignItems",
})
export type OwnCampaignItems = typeof OwnCampaignItems.Type
