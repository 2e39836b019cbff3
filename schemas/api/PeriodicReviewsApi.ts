/** Overdue reviews of Access, confirmations that it is still needed, and proposals to revoke it (docs/api/identity.md; extras). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AccessId, InstitutionId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { limitOr } from "../identity/ListPage.ts"
import { AccessConfirmation, AccessVersionDecision, OverdueReviews } from "../identity/PeriodicReview.ts"
import { AccessRevocationRequest } from "../identity/RequestBodies.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { ForeignId } from "../Wire.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

const institution = { institution_id: InstitutionId }

export class PeriodicReviewsApi extends HttpApiGroup.make("periodic-reviews")
  .add(
    HttpApiEndpoint.get("listOverdueReviews", "/v1/institutions/:institution_id/overdue-reviews", {
      params: institution,
      query: { limit: limitOr(50), after_id: Schema.optionalKey(ForeignId) },
      success: OverdueReviews,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Active Access that was not reviewed for a year, as a Sponsor, administrator, operator or auditor",
    ),
    HttpApiEndpoint.post("confirmAccess", "/v1/institutions/:institution_id/access/:access_id/confirm", {
      params: { ...institution, access_id: AccessId },
      headers: optionallyKeyed,
      payload: AccessVersionDecision,
      success: AccessConfirmation.pipe(HttpApiSchema.status(201)),
      error: [
        ...receiptProblems,
        ...Problems.roleProblems,
        Problems.AccessNotActive,
        Problems.FourEyesRequired,
        Problems.VersionConflict,
      ],
    }).annotate(
      OpenApi.Summary,
      "Confirm that an Access is still needed, as an owner of its project, a Sponsor or an administrator",
    ),
    HttpApiEndpoint.post(
      "proposeAccessRevocation",
      "/v1/institutions/:institution_id/access/:access_id/propose-revocation",
      {
        params: { ...institution, access_id: AccessId },
        headers: optionallyKeyed,
        payload: AccessVersionDecision,
        success: AccessRevocationRequest.pipe(HttpApiSchema.status(201)),
        error: [
          ...receiptProblems,
          ...Problems.roleProblems,
          Problems.AccessNotActive,
          Problems.FourEyesRequired,
          Problems.RequestExists,
          Problems.VersionConflict,
        ],
      },
    ).annotate(
      OpenApi.Summary,
      "Propose that an Access is revoked; another person, an administrator, decides",
    ),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Periodic reviews",
    description: "Access whose review is due, and what its owners say about it.",
  })) {}
