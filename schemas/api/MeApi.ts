/** `/v1/me`: a person's own account, sessions, authenticators and credential actions (docs/api/identity.md). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { IntentId } from "../BrandedIds.ts"
import { Freshness, OwnAccount, SessionList } from "../identity/IdentityAccount.ts"
import {
  AuthenticatorList,
  Capabilities,
  FinishAction,
  FinishedAction,
  StartAction,
  StartedAction,
} from "../identity/CredentialAction.ts"
import { NoticeSettings, NoticeSettingsChange } from "../identity/NoticeDelivery.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { codePoints } from "../Validation/Scalars.ts"
import { HTTPValidationError } from "../Validation.ts"
import { RequestValidation, SecretRequest, strictBody } from "./RequestValidation.ts"
import { Managed } from "./ManagementApi.ts"

/**
 * `x-portal-binding`: an opaque value of the portal's server session; an action that starts with it must complete with
 * it.
 */
const bound = { ...optionallyKeyed, "x-portal-binding": Schema.optionalKey(Schema.String.check(codePoints(1, 512))) }

const own = Problems.RoleRequired

const acting = [
  own,
  NotFound,
  Problems.InsufficientUserAuthentication,
  Problems.InvalidState,
  ...receiptProblems,
  HTTPValidationError,
] as const

export class MeApi extends HttpApiGroup.make("me")
  .add(
    HttpApiEndpoint.get("me", "/v1/me", { success: OwnAccount, error: own })
      .annotate(OpenApi.Summary, "Your own account, with memberships and projects"),
    HttpApiEndpoint.get("freshness", "/v1/me/freshness", { success: Freshness, error: own })
      .annotate(OpenApi.Summary, "How fresh and strong your sign-in is, and what it is enough for"),
    HttpApiEndpoint.get("listSessions", "/v1/me/sessions", { success: SessionList, error: own })
      .annotate(OpenApi.Summary, "Where you are signed in, last seen first"),
    HttpApiEndpoint.get("listAuthenticators", "/v1/me/authenticators", { success: AuthenticatorList, error: own })
      .annotate(OpenApi.Summary, "What you sign in with; never a secret of it"),
    HttpApiEndpoint.get("credentialCapabilities", "/v1/me/credential-actions", { success: Capabilities, error: own })
      .annotate(OpenApi.Summary, "Which credential actions you could take now, and what sign-in each asks for"),
    HttpApiEndpoint.post("startCredentialAction", "/v1/me/credential-actions", {
      headers: bound,
      payload: StartAction,
      success: StartedAction.pipe(HttpApiSchema.status(201)),
      error: acting,
    }).annotate(OpenApi.Summary, "Start a credential action; its challenge can be answered for ten minutes"),
    HttpApiEndpoint.post("completeCredentialAction", "/v1/me/credential-actions/:intent_id/complete", {
      params: { intent_id: IntentId },
      headers: bound,
      payload: FinishAction,
      success: FinishedAction,
      error: [...acting, Problems.PortalBindingMismatch, Problems.IntentExpired],
    }).annotate(OpenApi.Summary, "Complete a credential action with its proof"),
    HttpApiEndpoint.get("noticeSettings", "/v1/me/notice-settings", { success: NoticeSettings, error: own })
      .annotate(OpenApi.Summary, "How you are told by mail of your requests and of what waits for your signature"),
    HttpApiEndpoint.put("setNoticeSettings", "/v1/me/notice-settings", {
      payload: NoticeSettingsChange,
      success: NoticeSettings,
      error: [own, HTTPValidationError],
    }).annotate(OpenApi.Summary, "Choose whether notices are gathered, mailed at once, or not mailed"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotate(SecretRequest, true)
  .annotateMerge(OpenApi.annotations({
    title: "Personal account",
    description: "Everyone's own account and credentials.",
  })) {}
