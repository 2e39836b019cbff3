/** Operations, diagnostics and jobs (docs/api/identity.md). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ProjectId, ProviderJobId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { Diagnostics, Job, Jobs, OperationsSummary } from "../identity/Operation.ts"
import { LagCursor } from "../identity/LagReport.ts"
import { limitOfPage, limitOr } from "../identity/ListPage.ts"
import { DecisionReason, ReasonBody } from "../identity/DecisionReason.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { InvalidState, OutcomeUnknown, RoleRequired } from "../problems/IdentityProblems.ts"
import { QueryUuid, Text } from "../Validation/Scalars.ts"
import { RequestValidation, SecretRequest, strictBody } from "./RequestValidation.ts"
import { Managed } from "./ManagementApi.ts"

/** The client at the provider, as the provider's operator finds it there. */
export const JobRepair = Schema.Struct({
  client_id: Text(1, 500),
  registration_client_uri: Schema.optionalKey(Schema.NullOr(Text(1, 2048))),
  registration_access_token: Schema.optionalKey(Schema.NullOr(Text(1, 4096))),
  reason: DecisionReason,
}).annotate({ identifier: "JobRepair" })

/** A page of `lifecycle_lag`: the consumers that are less far behind than the one that `after_lag` names. */
const lagPage = { lag_limit: limitOfPage, after_lag: Schema.optionalKey(LagCursor) }

const job = { job_id: ProviderJobId }
const reviewed = [NotFound, RoleRequired, InvalidState, ...receiptProblems] as const

export class OperationsApi extends HttpApiGroup.make("operations")
  .add(
    HttpApiEndpoint.get("operations", "/v1/operations", { success: OperationsSummary, error: RoleRequired })
      .annotate(OpenApi.Summary, "The state of the work that the caller can see"),
    HttpApiEndpoint.get("operationsDiagnostics", "/v1/operations/diagnostics", {
      query: lagPage,
      success: Diagnostics,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Failed and ambiguous work, workers, drift and lag, for operators"),
    HttpApiEndpoint.get("projectDiagnostics", "/v1/projects/:project_id/operations/diagnostics", {
      params: { project_id: ProjectId },
      query: lagPage,
      success: Diagnostics,
      error: [NotFound, RoleRequired],
    }).annotate(OpenApi.Summary, "Diagnostics of one project"),
    HttpApiEndpoint.get("listJobs", "/v1/jobs", {
      /** `after_id`: the last job of the page before; older ones follow. */
      query: { limit: limitOr(100), after_id: Schema.optionalKey(QueryUuid) },
      success: Jobs,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Jobs, the newest first, for operators"),
    HttpApiEndpoint.post("reconcileJob", "/v1/jobs/:job_id/reconcile", {
      params: job,
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: Job,
      error: [...reviewed, OutcomeUnknown],
    }).annotate(OpenApi.Summary, "Ask the provider, by the saved reference, for the outcome of an ambiguous write"),
    HttpApiEndpoint.post("retryJob", "/v1/jobs/:job_id/retry", {
      params: job,
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: Job,
      error: reviewed,
    }).annotate(OpenApi.Summary, "Send a write again that failed, or whose outcome cannot be found out"),
    HttpApiEndpoint.post("repairJob", "/v1/jobs/:job_id/repair", {
      params: job,
      headers: optionallyKeyed,
      payload: JobRepair,
      success: Job,
      error: [...reviewed, OutcomeUnknown],
    }).annotate(SecretRequest, true)
      .annotate(OpenApi.Summary, "Name the client that a write made at the provider"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({ title: "Operations", description: "Background work and its state." })) {}
