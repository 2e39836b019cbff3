/** Websites of an institution, which are projects (docs/api/identity.md). */
import { Effect, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { InstitutionId, ProjectId } from "../BrandedIds.ts"
import { keyed } from "../identity/IdempotencyKey.ts"
import {
  LaunchCreate,
  LaunchProposal,
  ListedOwners,
  ListedProjects,
  OwnerChange,
  Project,
  ProjectLaunches,
  ProjectOwners,
  RequestableProjects,
  Transition,
  Website,
  WebsiteRegistration,
  WithdrawnWebsite,
} from "../identity/Project.ts"
import { ProjectEvents } from "../identity/ProjectEvent.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { ForeignId } from "../Wire.ts"
import { QueryUuid } from "../Validation/Scalars.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"
import { Managed } from "./ManagementApi.ts"

const institution = { institution_id: InstitutionId }
const project = { project_id: ProjectId }

const page = {
  /** A decimal integer from 1 to 100 without leading zeros. */
  limit: Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u)).annotate({ default: "50" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("50")),
  ),
  /** The last project of the page before. */
  after_id: Schema.optionalKey(ForeignId),
}

export class WebsitesApi extends HttpApiGroup.make("websites")
  .add(
    HttpApiEndpoint.post("registerWebsite", "/v1/institutions/:institution_id/websites", {
      params: institution,
      headers: keyed,
      payload: WebsiteRegistration,
      success: Website.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems, Problems.OwnerNotActive, Problems.WebsiteExists],
    }).annotate(OpenApi.Summary, "Register a website, as a Sponsor or an effective administrator"),
    HttpApiEndpoint.get("listProjects", "/v1/institutions/:institution_id/projects", {
      params: institution,
      query: page,
      success: ListedProjects,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "The institution's projects, ascending by id, as a Sponsor, administrator or operator",
    ),
    HttpApiEndpoint.get("listRequestableProjects", "/v1/institutions/:institution_id/requestable-projects", {
      params: institution,
      query: page,
      success: RequestableProjects,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Projects to which the caller, an effective member, may ask for Access, ascending by id",
    ),
    HttpApiEndpoint.get("getProject", "/v1/projects/:project_id", {
      params: project,
      success: Project,
      error: Problems.roleProblems,
    }).annotate(OpenApi.Summary, "A project with its client, version, owners and launches, and why it is held"),
    HttpApiEndpoint.post("withdrawWebsite", "/v1/institutions/:institution_id/websites/:project_id/withdraw", {
      params: { ...institution, ...project },
      headers: keyed,
      payload: Transition,
      success: WithdrawnWebsite,
      error: [...Problems.roleProblems, ...receiptProblems, Problems.InvalidState, Problems.VersionConflict],
    }).annotate(OpenApi.Summary, "Withdraw a website for good: its client, sessions and service grants end"),
    HttpApiEndpoint.post("proposeLaunch", "/v1/projects/:project_id/launch-proposals", {
      params: project,
      headers: keyed,
      payload: LaunchCreate,
      success: LaunchProposal.pipe(HttpApiSchema.status(201)),
      error: [
        ...Problems.roleProblems,
        ...receiptProblems,
        Problems.EnvironmentHeld,
        Problems.InvalidState,
        Problems.LaunchUrlUnverified,
      ],
    }).annotate(OpenApi.Summary, "Propose to launch a project, as an active owner"),
    HttpApiEndpoint.get("listLaunchProposals", "/v1/projects/:project_id/launch-proposals", {
      params: project,
      query: { limit: page.limit, after_id: Schema.optionalKey(QueryUuid) },
      success: ProjectLaunches,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "The project's launch proposals, newest first, as an owner, Sponsor, administrator or operator",
    ),
    HttpApiEndpoint.get("listProjectOwners", "/v1/projects/:project_id/owners", {
      params: project,
      query: page,
      success: ListedOwners,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "The project's owners, former ones included, by person, as an owner, Sponsor, administrator or operator",
    ),
    HttpApiEndpoint.get("listProjectEvents", "/v1/projects/:project_id/events", {
      params: project,
      query: { limit: page.limit, after_id: Schema.optionalKey(QueryUuid) },
      success: ProjectEvents,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "The project's lifecycle events, decoded, newest first, as an owner or an operator of its institution",
    ),
    HttpApiEndpoint.post("changeProjectOwner", "/v1/projects/:project_id/owners", {
      params: project,
      headers: keyed,
      payload: OwnerChange,
      success: ProjectOwners,
      error: [
        ...Problems.roleProblems,
        ...receiptProblems,
        Problems.InvalidState,
        Problems.Held,
        Problems.LastOwner,
        Problems.OwnerNotActive,
      ],
    }).annotate(OpenApi.Summary, "Make a person an owner or no owner, as an effective administrator"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Websites",
    description: "Projects of an institution: registered, launched, owned, withdrawn.",
  })) {}
