/** `/v1/policies/reviews`: holders of the required roles decide requests (docs/api/identity.md). */
import { Effect, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PolicyReviewId } from "../BrandedIds.ts"
import { keyed, optionallyKeyed } from "../identity/IdempotencyKey.ts"
import {
  Approval,
  PolicyReview,
  PolicyReviewDetail,
  PolicyReviews,
  PolicyReviewState,
} from "../identity/PolicyReview.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { QueryOneOf, QueryUuid } from "../Validation/Scalars.ts"
import { dryRun } from "./DryRun.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"
import { Managed, RecognisedByCommand } from "./ManagementApi.ts"

/** Lists of what the caller decided, beside the states. */
const ownDecisions = ["decided_by_me", "signed_by_me"] as const

const review = { review_id: PolicyReviewId }

const refusals = [
  ...Problems.roleProblems,
  ...receiptProblems,
  Problems.FourEyesRequired,
  Problems.InsufficientUserAuthentication,
  Problems.InvalidState,
] as const

export class PoliciesApi extends HttpApiGroup.make("policies")
  .add(
    HttpApiEndpoint.get("listPolicyReviews", "/v1/policies/reviews", {
      query: {
        /**
         * By default `open`; no review has an unknown state. What the caller decided is listed whatever its state:
         * `signed_by_me` waits for another signature.
         */
        state: QueryOneOf([...PolicyReviewState.literals, ...ownDecisions], "open").pipe(
          Schema.withDecodingDefaultKey(Effect.succeed("open")),
        ),
        /** A decimal integer from 1 to 100 without leading zeros. */
        limit: Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u)).annotate({ default: "50" }).pipe(
          Schema.withDecodingDefaultKey(Effect.succeed("50")),
        ),
        after_id: Schema.optionalKey(QueryUuid),
      },
      success: PolicyReviews,
      error: Problems.RoleRequired,
    }).annotate(OpenApi.Summary, "The reviews that the caller may act on, oldest first, or has decided, newest first"),
    HttpApiEndpoint.get("getPolicyReview", "/v1/policies/reviews/:review_id", {
      params: review,
      success: PolicyReviewDetail,
      error: [NotFound, Problems.RoleRequired],
    }).annotate(OpenApi.Summary, "A review that the caller may act on, or has decided, and who may sign it"),
    HttpApiEndpoint.post("approvePolicyReview", "/v1/policies/reviews/:review_id/approve", {
      params: review,
      query: dryRun,
      headers: keyed,
      payload: Approval,
      success: [PolicyReview, HttpApiSchema.NoContent],
      error: [
        ...refusals,
        Problems.EnvironmentHeld,
        Problems.FourEyesCollapsed,
        Problems.Held,
        Problems.PreviewChanged,
        Problems.VersionConflict,
      ],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Approve in a role that the caller holds; the last approval carries the request out",
    ),
    HttpApiEndpoint.post("declinePolicyReview", "/v1/policies/reviews/:review_id/decline", {
      params: review,
      headers: optionallyKeyed,
      payload: Approval,
      success: PolicyReview,
      error: refusals,
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Decline in a role in which the caller could approve",
    ),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Policy reviews",
    description: "Each role approved by a different person, none by the author.",
  })) {}
