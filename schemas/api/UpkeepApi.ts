/** Operators' decisions about the whole installation (docs/api/identity.md; extras). */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PersonId } from "../BrandedIds.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { InstallationState } from "../identity/InstallationView.ts"
import { IntakeReject, IntakeRejectPage, intakeRejectQuery } from "../identity/IntakeRejectView.ts"
import { OutgoingMail, OutgoingMailPage, outgoingMailQuery } from "../identity/MailView.ts"
import { personHoldQuery, PersonHolds, ReleasedPerson } from "../identity/PersonHoldView.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import {
  FourEyesRequired,
  Held,
  InsufficientUserAuthentication,
  InvalidState,
  RoleRequired,
} from "../problems/IdentityProblems.ts"
import { Id } from "../Wire.ts"
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
    HttpApiEndpoint.get("listIntakeRejects", "/v1/operations/intake-rejects", {
      query: intakeRejectQuery,
      success: IntakeRejectPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Messages that could not be taken in, newest first, for operators"),
    HttpApiEndpoint.post("retryIntakeReject", "/v1/operations/intake-rejects/:reject_id/retry", {
      params: { reject_id: Id },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: IntakeReject,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Let a rejected message wait for its account for seven days more, as an operator"),
    HttpApiEndpoint.post("discardIntakeReject", "/v1/operations/intake-rejects/:reject_id/discard", {
      params: { reject_id: Id },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: IntakeReject,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Discard a message that could not be taken in, as an operator"),
    HttpApiEndpoint.get("listOutgoingMails", "/v1/operations/mails", {
      query: outgoingMailQuery,
      success: OutgoingMailPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Mails that have not been sent, newest first, with masked recipients, for operators"),
    HttpApiEndpoint.post("retryOutgoingMail", "/v1/operations/mails/:mail_id/retry", {
      params: { mail_id: Id },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: OutgoingMail,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Try to send a mail again at once, as an operator"),
    HttpApiEndpoint.post("forgetOutgoingMail", "/v1/operations/mails/:mail_id/forget", {
      params: { mail_id: Id },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: OutgoingMail,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Give a mail up for good, as an operator"),
    HttpApiEndpoint.get("listPersonHolds", "/v1/operations/person-holds", {
      query: personHoldQuery,
      success: PersonHolds,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "People whom identity providers hold, those held last first, for operators"),
    HttpApiEndpoint.post("releasePerson", "/v1/operations/person-holds/:person_id/release", {
      params: { person_id: PersonId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: ReleasedPerson,
      error: [NotFound, RoleRequired, FourEyesRequired, InsufficientUserAuthentication, Held, ...receiptProblems],
    }).annotate(OpenApi.Summary, "End all holds of a person by identity providers, as an operator"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Upkeep",
    description:
      "What waits for an operator's word: a held installation, held people, and what could not be taken in or sent.",
  })) {}
