/** What an operator decides about the whole installation (docs/api/identity.md; extras). */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { InstallationState } from "../identity/InstallationView.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

export class UpkeepApi extends HttpApiGroup.make("upkeep")
  .add(
    HttpApiEndpoint.get("installation", "/v1/operations/installation", {
      success: InstallationState,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "The epoch, and why the installation is held where it is; for operators"),
    HttpApiEndpoint.post("openInstallation", "/v1/operations/installation/open", {
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: InstallationState,
      error: [RoleRequired, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Open a held installation, even where revocations may be lost, as an operator"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Upkeep",
    description: "What waits for an operator's word: a held installation and what could not be taken in or sent.",
  })) {}
