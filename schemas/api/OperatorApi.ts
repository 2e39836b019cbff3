/** The operator's plane: what `cli` shows and does, for operators over HTTP (docs/api/identity.md; extras). */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AuditPage, auditQuery, OwnAuditPage, ownAuditQuery } from "../identity/AuditView.ts"
import { DoctorReport } from "../identity/DoctorReport.ts"
import { RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

export class OperatorApi extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("doctor", "/v1/operations/doctor", { success: DoctorReport, error: RoleRequired })
      .annotate(OpenApi.Summary, "Checks configuration, database, keys and broker, and says what to do; for operators"),
    HttpApiEndpoint.get("listAudit", "/v1/operations/audit", {
      query: auditQuery,
      success: AuditPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "The audit of all accounts and people, newest first, for operators"),
    HttpApiEndpoint.get("listOwnAudit", "/v1/me/audit", {
      query: ownAuditQuery,
      success: OwnAuditPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "What you did and tried, newest first"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Operator",
    description: "What an operator sees and does in the whole installation.",
  })) {}
