/** Institutions, their members, invitations and Access, and people's names (docs/api/identity.md; extras). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AccessId, InstitutionId } from "../BrandedIds.ts"
import { AccessEnd, AccessShortening } from "../identity/AccessEnd.ts"
import { AccessExplanation } from "../identity/AccessExplanation.ts"
import {
  Institution,
  InstitutionAccess,
  InstitutionEnrollments,
  InstitutionMembers,
  Institutions,
  PersonNames,
} from "../identity/Institution.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { limitOr } from "../identity/ListPage.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { QueryUuid } from "../Validation/Scalars.ts"
import { AskedTime, ForeignId } from "../Wire.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

const params = { institution_id: InstitutionId }

/** Items in ascending order of an opaque id, after this one. */
const page = { limit: limitOr(50), after_id: Schema.optionalKey(ForeignId) }

const path = "/v1/institutions/:institution_id"

export class InstitutionsApi extends HttpApiGroup.make("institutions")
  .add(
    HttpApiEndpoint.get("listInstitutions", "/v1/institutions", {
      query: page,
      success: Institutions,
      error: Problems.RoleRequired,
    }).annotate(
      OpenApi.Summary,
      "Institutions where you have a membership, for operators and auditors all; ascending by id",
    ),
    HttpApiEndpoint.get("getInstitution", path, { params, success: Institution, error: NotFound })
      .annotate(OpenApi.Summary, "An institution where you have a membership, for operators and auditors any"),
    HttpApiEndpoint.get("listMembers", `${path}/members`, {
      params,
      query: page,
      success: InstitutionMembers,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Members with their roles, ascending by person, as a Sponsor, administrator, operator or auditor",
    ),
    HttpApiEndpoint.get("listEnrollments", `${path}/enrollments`, {
      params,
      query: { limit: limitOr(50), after_id: Schema.optionalKey(QueryUuid) },
      success: InstitutionEnrollments,
      error: Problems.roleProblems,
    }).annotate(OpenApi.Summary, "Invitations, newest first, as a Sponsor, administrator or operator"),
    HttpApiEndpoint.get("listAccess", `${path}/access`, {
      params,
      query: {
        ...page,
        at: Schema.optionalKey(AskedTime.annotate({
          description: "A past time: the Access that was active then, with its version and review of that time",
        })),
      },
      success: InstitutionAccess,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Every Access with its version and review, ascending by id, as a Sponsor, administrator, operator or auditor",
    ),
    HttpApiEndpoint.get("explainAccess", `${path}/access/:access_id/explain`, {
      params: { ...params, access_id: AccessId },
      success: AccessExplanation,
      error: Problems.roleProblems,
    }).annotate(
      OpenApi.Summary,
      "Why a person has, or had, an Access: who asked and who signed, every version with its event, every review",
    ),
    HttpApiEndpoint.post("shortenAccess", `${path}/access/:access_id/shorten`, {
      params: { ...params, access_id: AccessId },
      headers: optionallyKeyed,
      payload: AccessShortening,
      success: AccessEnd,
      error: [
        ...receiptProblems,
        ...Problems.roleProblems,
        Problems.AccessNotActive,
        Problems.InvalidState,
        Problems.VersionConflict,
      ],
    }).annotate(OpenApi.Summary, "Bring the end of an Access forward, as an administrator"),
    HttpApiEndpoint.get("listPersonNames", "/v1/people", {
      query: {
        /** Up to 100 ids of people, separated by commas. */
        ids: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}(,[A-Za-z0-9_-]{1,128}){0,99}$/u)),
      },
      success: PersonNames,
      error: Problems.RoleRequired,
    }).annotate(OpenApi.Summary, "Names of people whom you share an institution with; other ids are left out"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Institutions",
    description: "Institutions, and who belongs to them.",
  })) {}
