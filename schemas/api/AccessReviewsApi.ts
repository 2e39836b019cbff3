/** `/v1/institutions/{institution_id}/access-grant-reviews` (docs/api/identity.md). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AccessReviewId, InstitutionId } from "../BrandedIds.ts"
import { PackPart, packQuery } from "../identity/EvidencePack.ts"
import { GrantEvidence, GrantProposal, GrantReceipt, GrantReviewList, Review } from "../identity/AccessReview.ts"
import { keyed } from "../identity/IdempotencyKey.ts"
import { limitOfPage } from "../identity/ListPage.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { answerHeader } from "./AnswerHeader.ts"
import { dryRun } from "./DryRun.ts"
import { QueryUuid } from "../Validation/Scalars.ts"
import { ForeignId } from "../Wire.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"
import { Managed, RecognisedByCommand } from "./ManagementApi.ts"

const institution = { institution_id: InstitutionId }
const review = { ...institution, review_id: AccessReviewId }

/**
 * A page of each of the two lists: `after_id` continues the reviews, `after_access_id` the candidates. Without a query
 * both lists are whole.
 */
const pages = {
  limit: limitOfPage,
  after_id: Schema.optionalKey(QueryUuid),
  after_access_id: Schema.optionalKey(ForeignId),
}

/**
 * `If-Match: "<evidence_digest>"`, the ETag of the receipt that the decider saw: the decision applies to that evidence
 * only.
 */
const matching = { ...keyed, "if-match": Schema.optionalKey(Schema.String) }

const etag = "The evidence's digest, quoted, for `If-Match` of a later decision."

export class AccessReviewsApi extends HttpApiGroup.make("access-grant-reviews")
  .add(
    HttpApiEndpoint.get("listAccessGrantReviews", "/v1/institutions/:institution_id/access-grant-reviews", {
      params: institution,
      query: pages,
      success: GrantReviewList,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Reviews of Access grants with their present validity, and the Access that could be proposed",
    ),
    HttpApiEndpoint.get(
      "getAccessGrantReview",
      "/v1/institutions/:institution_id/access-grant-reviews/:review_id",
      { params: review, success: Review, error: Problems.roleProblems },
    ).annotate(OpenApi.Summary, "One review, as the list shows it, with its present validity"),
    HttpApiEndpoint.get(
      "getAccessGrantEvidence",
      "/v1/institutions/:institution_id/access-grant-reviews/:review_id/evidence",
      { params: review, success: GrantEvidence, error: Problems.roleProblems },
    ).annotate(OpenApi.Summary, "The evidence of one review: each decision, chained by digests"),
    HttpApiEndpoint.get("getEvidencePack", "/v1/institutions/:institution_id/evidence", {
      params: institution,
      query: packQuery,
      success: PackPart,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "A part of a pack of evidence, signed: Access, requests and reviews, with the proof of each decision",
    ),
    HttpApiEndpoint.post("proposeAccessGrantReview", "/v1/institutions/:institution_id/access-grant-reviews", {
      params: institution,
      headers: keyed,
      payload: GrantProposal,
      success: GrantReceipt.pipe(HttpApiSchema.status(201)),
      error: [
        ...Problems.roleProblems,
        ...receiptProblems,
        Problems.AccessNotActive,
        Problems.AccessVersionSuperseded,
        Problems.GrantEventMismatch,
        Problems.ReviewExists,
      ],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Propose a review of exactly one active Access version, as a Sponsor",
    )
      .annotate(OpenApi.Transform, answerHeader(201, "ETag", etag)),
    HttpApiEndpoint.post(
      "approveAccessGrantReview",
      "/v1/institutions/:institution_id/access-grant-reviews/:review_id/approve",
      {
        params: review,
        query: dryRun,
        headers: matching,
        payload: ReasonBody,
        success: [GrantReceipt, HttpApiSchema.NoContent],
        error: [
          ...Problems.roleProblems,
          ...receiptProblems,
          Problems.FourEyesRequired,
          Problems.Held,
          Problems.InsufficientUserAuthentication,
          Problems.PreconditionFailed,
          Problems.InvalidState,
          Problems.AccessNotActive,
          Problems.AccessVersionSuperseded,
        ],
      },
    ).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Approve the Sponsor's locked decision, as another, effective administrator",
    )
      .annotate(OpenApi.Transform, answerHeader(200, "ETag", etag)),
    HttpApiEndpoint.post(
      "revokeAccessGrantReview",
      "/v1/institutions/:institution_id/access-grant-reviews/:review_id/revoke",
      {
        params: review,
        headers: matching,
        payload: ReasonBody,
        success: GrantReceipt,
        error: [...Problems.roleProblems, ...receiptProblems, Problems.PreconditionFailed, Problems.InvalidState],
      },
    ).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "End a review's authority; the Access and the evidence stay as they are",
    )
      .annotate(OpenApi.Transform, answerHeader(200, "ETag", etag)),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Access grant reviews",
    description: "Independent review of Access within an institution.",
  })) {}
