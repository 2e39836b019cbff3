/** The operator's plane: what `cli` shows and does, for operators over HTTP (docs/api/identity.md; extras). */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DoctorReport } from "../identity/DoctorReport.ts"
import { RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

export class OperatorApi extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("doctor", "/v1/operations/doctor", { success: DoctorReport, error: RoleRequired })
      .annotate(OpenApi.Summary, "Checks configuration, database, keys and broker, and says what to do; for operators"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Operator",
    description: "What an operator sees and does in the whole installation.",
  })) {}
