/** The keys that sign lifecycle messages, for operators (docs/api/identity.md; extras). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { KeyActivation, KeyAnnouncement, SigningKeyRing } from "../identity/SigningKeyView.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { InsufficientUserAuthentication, InvalidState, RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

export class SigningKeysApi extends HttpApiGroup.make("signing-keys")
  .add(
    HttpApiEndpoint.get("listSigningKeys", "/v1/operations/signing-keys", {
      success: SigningKeyRing,
      error: RoleRequired,
    }).annotate(
      OpenApi.Summary,
      "The keys that sign lifecycle messages, and who a transition waits for; for operators",
    ),
    HttpApiEndpoint.post("announceSigningKey", "/v1/operations/signing-keys/announce", {
      headers: optionallyKeyed,
      payload: KeyAnnouncement,
      success: SigningKeyRing,
      error: [RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Begin a transition to the next signing key and tell every project, as an operator"),
    HttpApiEndpoint.post("publishSigningKey", "/v1/operations/signing-keys/publish", {
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: SigningKeyRing,
      error: [RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Put the announced signing key into the key set now, as an operator"),
    HttpApiEndpoint.post("activateSigningKey", "/v1/operations/signing-keys/activate", {
      headers: optionallyKeyed,
      payload: KeyActivation,
      success: SigningKeyRing,
      error: [RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Let projects switch to the announced signing key from now on, as an operator"),
    HttpApiEndpoint.post("retireSigningKey", "/v1/operations/signing-keys/:kid/retire", {
      params: { kid: Schema.String },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: SigningKeyRing,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "End a signing key that has verified long enough, as an operator"),
    HttpApiEndpoint.post("compromiseSigningKey", "/v1/operations/signing-keys/:kid/compromise", {
      params: { kid: Schema.String },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: SigningKeyRing,
      error: [NotFound, RoleRequired, InsufficientUserAuthentication, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Take a stolen signing key out of use at once, as an operator"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Signing keys",
    description: "How the keys that sign lifecycle messages follow each other, and an operator's word on it.",
  })) {}
