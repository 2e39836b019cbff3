/** `/v1/projects/{project_id}/lifecycle-service-grants` (docs/api/identity.md). */
import { Effect, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ProjectId, ServiceGrantId } from "../BrandedIds.ts"
import { keyed } from "../identity/IdempotencyKey.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { GrantRead, LifecycleServiceApproval, LifecycleServiceProposal } from "../identity/ServiceGrant.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { QueryUuid } from "../Validation/Scalars.ts"
import { answerHeader } from "./AnswerHeader.ts"
import { dryRun } from "./DryRun.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"
import { Managed } from "./ManagementApi.ts"

const project = { project_id: ProjectId }
const grant = { ...project, grant_id: ServiceGrantId }

const path = "/v1/projects/:project_id/lifecycle-service-grants"

/** A page of the listing. */
export const page = {
  /** A decimal integer from 1 to 100 without leading zeros. */
  limit: Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u)).annotate({ default: "50" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("50")),
  ),
  after_id: Schema.optionalKey(QueryUuid),
}

export class ServiceGrantsApi extends HttpApiGroup.make("lifecycle-service-grants")
  .add(
    HttpApiEndpoint.post("proposeLifecycleServiceGrant", path, {
      params: project,
      headers: keyed,
      payload: LifecycleServiceProposal,
      success: GrantRead.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems, Problems.EnvironmentMismatch, Problems.InvalidState],
    }).annotate(OpenApi.Summary, "Propose that a service may read the project's lifecycle, as an owner"),
    HttpApiEndpoint.get("listLifecycleServiceGrants", path, {
      params: project,
      query: page,
      success: Schema.Array(GrantRead),
      error: Problems.roleProblems,
    }).annotate(OpenApi.Summary, "The project's service grants, oldest first")
      .annotate(OpenApi.Transform, answerHeader(200, "Link", "RFC 8288: the next page, where this one is full.")),
    HttpApiEndpoint.post("approveLifecycleServiceGrant", `${path}/:grant_id/approve`, {
      params: grant,
      query: dryRun,
      headers: keyed,
      payload: LifecycleServiceApproval,
      success: [GrantRead, HttpApiSchema.NoContent],
      error: [
        ...Problems.roleProblems,
        ...receiptProblems,
        Problems.EnvironmentHeld,
        Problems.EnvironmentMismatch,
        Problems.FourEyesRequired,
        Problems.Held,
        Problems.InsufficientUserAuthentication,
        Problems.InvalidState,
        Problems.VersionConflict,
      ],
    }).annotate(OpenApi.Summary, "Approve a service grant, as an independent administrator"),
    HttpApiEndpoint.post("revokeLifecycleServiceGrant", `${path}/:grant_id/revoke`, {
      params: grant,
      headers: keyed,
      payload: ReasonBody,
      success: GrantRead,
      error: [...Problems.roleProblems, ...receiptProblems],
    }).annotate(OpenApi.Summary, "End a service grant at once; ending it again shows its present state"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Lifecycle service grants",
    description: "Which service may read a project's lifecycle.",
  })) {}
