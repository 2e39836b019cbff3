/** Requests of people on their own account, and people themselves (docs/api/identity.md). */
import { Effect, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { RequestId } from "../BrandedIds.ts"
import { TemporaryAccessCreate } from "../identity/AccessEnd.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { keyed, optionallyKeyed } from "../identity/IdempotencyKey.ts"
import {
  AccessRequest,
  CreatedPerson,
  LinkCreate,
  LinkProof,
  LinkProofCreate,
  LinkRequest,
  Objection,
  OrganizationRequest,
  OwnRequest,
  OwnRequests,
  PersonCreate,
  RequestCreate,
  RequestFields,
} from "../identity/RequestBodies.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { QueryUuid } from "../Validation/Scalars.ts"
import { RequestValidation, SecretRequest, strictBody } from "./RequestValidation.ts"
import { Managed, RecognisedByCommand } from "./ManagementApi.ts"

export class RequestsApi extends HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.post("createOrganizationRequest", "/v1/me/organization-requests", {
      headers: keyed,
      payload: RequestFields,
      success: OrganizationRequest.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, Problems.RoleRequired],
    }).annotate(RecognisedByCommand, true).annotate(OpenApi.Summary, "Ask for an institution; an operator decides"),
    HttpApiEndpoint.post("createAccessRequest", "/v1/me/access-requests", {
      headers: keyed,
      payload: RequestCreate,
      success: AccessRequest.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, NotFound, Problems.RoleRequired, Problems.InvalidState, Problems.RequestExists],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Ask for Access to a project; a Sponsor and an administrator decide",
    ),
    HttpApiEndpoint.post("createTemporaryAccessRequest", "/v1/me/temporary-access-requests", {
      headers: optionallyKeyed,
      payload: TemporaryAccessCreate,
      success: AccessRequest.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, NotFound, Problems.RoleRequired, Problems.InvalidState, Problems.RequestExists],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Ask for Access to a project until a time, or for a later end of it; a Sponsor and an administrator decide",
    ),
    HttpApiEndpoint.get("listOwnRequests", "/v1/me/requests", {
      query: {
        /** A decimal integer from 1 to 100 without leading zeros. */
        limit: Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u)).annotate({ default: "100" }).pipe(
          Schema.withDecodingDefaultKey(Effect.succeed("100")),
        ),
        /** The last request of the page before: older ones follow. */
        after_id: Schema.optionalKey(QueryUuid),
      },
      success: OwnRequests,
      error: Problems.RoleRequired,
    }).annotate(
      OpenApi.Summary,
      "The caller's own requests of every kind, newest first, and links that the caller may object to",
    ),
    HttpApiEndpoint.post("withdrawRequest", "/v1/me/requests/:request_id/withdraw", {
      params: { request_id: RequestId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: OwnRequest,
      error: [...receiptProblems, NotFound, Problems.RoleRequired, Problems.InvalidState],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Withdraw an own request that is not decided yet; its review is closed",
    ),
    HttpApiEndpoint.post("createPerson", "/v1/people", {
      headers: keyed,
      payload: PersonCreate,
      success: CreatedPerson.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, Problems.RoleRequired, Problems.PersonExists],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Make a person, as an operator or a directory service",
    ),
    HttpApiEndpoint.post("createLinkProof", "/v1/me/link-proofs", {
      headers: optionallyKeyed,
      payload: LinkProofCreate,
      success: LinkProof.pipe(HttpApiSchema.status(201)),
      error: [...receiptProblems, Problems.RoleRequired, Problems.ProofConsumed],
    }).annotate(SecretRequest, true).annotate(RecognisedByCommand, true)
      .annotate(OpenApi.Summary, "Prove another own identity by a fresh access token of it"),
    HttpApiEndpoint.post("createLinkRequest", "/v1/link-requests", {
      headers: keyed,
      payload: LinkCreate,
      success: LinkRequest.pipe(HttpApiSchema.status(201)),
      error: [
        ...receiptProblems,
        NotFound,
        Problems.RoleRequired,
        Problems.FourEyesCollapsed,
        Problems.ProofConsumed,
        Problems.ProofExpired,
        Problems.RequestExists,
      ],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Ask for two identities to become one; an operator decides, the other side may object",
    ),
    HttpApiEndpoint.post("objectToLinkRequest", "/v1/link-requests/:link_request_id/object", {
      params: { link_request_id: RequestId },
      headers: optionallyKeyed,
      payload: Objection,
      success: LinkRequest,
      error: [...receiptProblems, NotFound, Problems.RoleRequired, Problems.InvalidState],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Object to a link of the caller's identity with another person's",
    ),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Requests",
    description: "Organizations, Access and links of identities, each decided by persons other than the author.",
  })) {}
