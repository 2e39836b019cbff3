/** Membership of institutions: invitations and changes of roles (an extra). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { InstitutionId, RequestId } from "../BrandedIds.ts"
import { keyed, optionallyKeyed } from "../identity/IdempotencyKey.ts"
import {
  AcceptedEnrollment,
  AuthenticatorResetCreate,
  AuthenticatorResetRequest,
  Enrollment,
  EnrollmentCreate,
  MembershipChange,
  MembershipRequest,
} from "../identity/RequestBodies.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"
import { Managed, RecognisedByCommand } from "./ManagementApi.ts"

const institution = { institution_id: InstitutionId }

export class EnrollmentsApi extends HttpApiGroup.make("enrollments")
  .add(
    HttpApiEndpoint.post("createEnrollment", "/v1/institutions/:institution_id/enrollments", {
      params: institution,
      headers: keyed,
      payload: EnrollmentCreate,
      success: Enrollment.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Propose an invitation; it is mailed once it was reviewed",
    ),
    HttpApiEndpoint.post("acceptEnrollment", "/v1/enrollments/:token/accept", {
      params: { token: Schema.String },
      headers: optionallyKeyed,
      success: AcceptedEnrollment,
      error: [...receiptProblems, NotFound, Problems.Held, Problems.InvalidState, Problems.RequestExists],
    }).annotate(RecognisedByCommand, true).annotate(OpenApi.Summary, "Accept an invitation by the token of its mail"),
    HttpApiEndpoint.post("revokeEnrollment", "/v1/institutions/:institution_id/enrollments/:enrollment_id/revoke", {
      params: { ...institution, enrollment_id: RequestId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: Enrollment,
      error: [...Problems.roleProblems, ...receiptProblems, Problems.InvalidState],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Revoke an invitation that was not accepted yet, as a person who may invite",
    ),
    HttpApiEndpoint.post("renewEnrollment", "/v1/institutions/:institution_id/enrollments/:enrollment_id/renew", {
      params: { ...institution, enrollment_id: RequestId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: Enrollment.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems, Problems.InvalidState],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Propose an ended invitation again, to the same recipient; it is reviewed anew",
    ),
    HttpApiEndpoint.post("changeMembership", "/v1/institutions/:institution_id/memberships", {
      params: institution,
      headers: optionallyKeyed,
      payload: MembershipChange,
      success: MembershipRequest.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems, Problems.RequestExists],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Ask for a member's role and state; a Sponsor and an administrator decide",
    ),
    HttpApiEndpoint.post("requestAuthenticatorReset", "/v1/institutions/:institution_id/authenticator-resets", {
      params: institution,
      headers: optionallyKeyed,
      payload: AuthenticatorResetCreate,
      success: AuthenticatorResetRequest.pipe(HttpApiSchema.status(201)),
      error: [...Problems.roleProblems, ...receiptProblems, Problems.FourEyesRequired, Problems.RequestExists],
    }).annotate(RecognisedByCommand, true).annotate(
      OpenApi.Summary,
      "Ask that all authenticators of a member who lost them are removed; an administrator decides",
    ),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Enrollments",
    description: "Members of an institution, and their roles.",
  })) {}
