/** Campaigns of an institution, and what waits in them for the caller (docs/api/identity.md; extras). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { CampaignId, CampaignItemId, InstitutionId } from "../BrandedIds.ts"
import {
  CampaignAnswer,
  CampaignCreate,
  CampaignDelegation,
  CampaignDetail,
  CampaignItem,
  CampaignItems,
  CampaignItemState,
  CampaignReschedule,
  Campaigns,
  OwnCampaignItems,
} from "../identity/Campaign.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { limitOr } from "../identity/ListPage.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { QueryOneOf, QueryUuid } from "../Validation/Scalars.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

const institution = { institution_id: InstitutionId }
const campaign = { ...institution, campaign_id: CampaignId }
const item = { ...campaign, item_id: CampaignItemId }

const page = { limit: limitOr(50), after_id: Schema.optionalKey(QueryUuid) }

const path = "/v1/institutions/:institution_id/campaigns"

export class CampaignsApi extends HttpApiGroup.make("campaigns")
  .add(
    HttpApiEndpoint.get("listCampaigns", path, {
      params: institution,
      query: page,
      success: Campaigns,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Campaigns of an institution, newest first, as a Sponsor, administrator, operator or auditor",
    ),
    HttpApiEndpoint.post("openCampaign", path, {
      params: institution,
      headers: optionallyKeyed,
      payload: CampaignCreate,
      success: CampaignDetail.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, ...Problems.roleProblems, Problems.InvalidState],
    }).annotate(OpenApi.Summary, "Open a campaign over a set of Accesses, as an administrator"),
    HttpApiEndpoint.get("getCampaign", `${path}/:campaign_id`, {
      params: campaign,
      success: CampaignDetail,
      error: Problems.roleProblems,
    }).annotate(OpenApi.Summary, "A campaign, and how many of its items are in which state"),
    HttpApiEndpoint.post("rescheduleCampaign", `${path}/:campaign_id/reschedule`, {
      params: campaign,
      headers: optionallyKeyed,
      payload: CampaignReschedule,
      success: CampaignDetail,
      error: [...receiptProblems, ...Problems.roleProblems, Problems.InvalidState],
    }).annotate(OpenApi.Summary, "Move the deadline of an open campaign, as an administrator"),
    HttpApiEndpoint.post("closeCampaign", `${path}/:campaign_id/close`, {
      params: campaign,
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: CampaignDetail,
      error: [...receiptProblems, ...Problems.roleProblems, Problems.InvalidState],
    }).annotate(OpenApi.Summary, "Close a campaign before its deadline, as an administrator"),
    HttpApiEndpoint.get("listCampaignItems", `${path}/:campaign_id/items`, {
      params: campaign,
      query: { ...page, state: Schema.optionalKey(QueryOneOf(CampaignItemState.literals)) },
      success: CampaignItems,
      error: Problems.roleProblems,
    }).annotate(OpenApi.Summary, "The items of a campaign with their answers, ascending by id"),
    HttpApiEndpoint.post("delegateCampaignItem", `${path}/:campaign_id/items/:item_id/delegate`, {
      params: item,
      headers: optionallyKeyed,
      payload: CampaignDelegation,
      success: CampaignItem,
      error: [...receiptProblems, ...Problems.roleProblems, Problems.FourEyesRequired, Problems.InvalidState],
    }).annotate(
      OpenApi.Summary,
      "Let a member of the institution answer an item, as an administrator or an owner of its project",
    ),
    HttpApiEndpoint.post("answerCampaignItem", `${path}/:campaign_id/items/:item_id/answer`, {
      params: item,
      headers: optionallyKeyed,
      payload: CampaignAnswer,
      success: CampaignItem,
      error: [...receiptProblems, ...Problems.roleProblems, Problems.FourEyesRequired, Problems.InvalidState],
    }).annotate(
      OpenApi.Summary,
      "Confirm an Access, or propose that it is revoked, as an owner of its project or the item's delegate",
    ),
    HttpApiEndpoint.get("listOwnCampaignItems", "/v1/me/campaign-items", {
      query: page,
      success: OwnCampaignItems,
      error: Problems.RoleRequired,
    }).annotate(OpenApi.Summary, "Items of campaigns that wait for your answer, ascending by id"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Campaigns",
    description: "Access that those who answer for it look at again, until a deadline.",
  })) {}
