/** Rollouts that an operator holds, fails and releases (docs/api/identity.md; extras). */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ProjectId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { heldRolloutQuery, HeldRollouts, RolloutDecision, RolloutStanding } from "../identity/RolloutView.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { InsufficientUserAuthentication, InvalidState, RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

export class RolloutsApi extends HttpApiGroup.make("rollouts")
  .add(
    HttpApiEndpoint.get("listRollouts", "/v1/operations/rollouts", {
      query: heldRolloutQuery,
      success: HeldRollouts,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Projects whose rollout is held or has failed, ascending by id, for operators"),
    HttpApiEndpoint.post("decideRollout", "/v1/operations/rollouts/:project_id", {
      params: { project_id: ProjectId },
      headers: optionallyKeyed,
      payload: RolloutDecision,
      success: RolloutStanding,
      error: [NotFound, RoleRequired, InsufficientUserAuthentication, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Hold, fail or release the rollout of a project, as an operator"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Rollouts",
    description: "An operator's brake on what a project activates.",
  })) {}
