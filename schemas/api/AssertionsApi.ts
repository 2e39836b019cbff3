/**
 * `/v1/assertions`: a configured issuer has the authenticators checked that its people have enrolled here. Authenticated
 * by an access token of the issuer's own client; the issuer asks about its own subjects only.
 */
import { Context } from "effect"
import {
  HttpApi,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi,
} from "effect/http-api"
import { AssertionId } from "../BrandedIds.ts"
import { CheckAssertion, CheckedAssertion, StartAssertion, StartedAssertion } from "../identity/Assertion.ts"
import { DependencyUnavailable, NotFound, RateLimited } from "../problems/HttpProblems.ts"
import { InvalidToken, RoleRequired } from "../problems/IdentityProblems.ts"
import { HTTPValidationError } from "../Validation.ts"
import { RequestValidation, SecretRequest, strictBody } from "./RequestValidation.ts"

/** The calling client of an issuer. */
export class Verifier extends Context.Service<Verifier, {
  /** `service:<issuer> <client_id>`. */
  readonly principal: string
  /** The issuer whose subjects the caller may ask about. */
  readonly issuer: string
}>()("bailiwick/schemas/api/AssertionsApi/Verifier") {}

/** Checks the token, then that its client may, then the issuer's limit; validation follows. */
export class Verifying extends HttpApiMiddleware.Service<Verifying, { provides: Verifier }>()(
  "bailiwick/schemas/api/AssertionsApi/Verifying",
  {
    security: {
      verifier: HttpApiSecurity.bearer.pipe(
        HttpApiSecurity.annotate(
          OpenApi.Description,
          "An access token (RFC 9068) of a client that ASSERTION_CLIENTS names, for the audience `service-management`.",
        ),
      ),
    },
    error: [InvalidToken, RoleRequired, RateLimited, DependencyUnavailable],
  },
) {}

export class AssertionsApi extends HttpApiGroup.make("assertions")
  .add(
    HttpApiEndpoint.post("startAssertion", "/v1/assertions", {
      payload: StartAssertion,
      success: StartedAssertion.pipe(HttpApiSchema.status(201)),
      error: [RateLimited, HTTPValidationError],
    }).annotate(OpenApi.Summary, "Start the check of a person's authenticators, for the issuer that signs them in"),
    HttpApiEndpoint.post("checkAssertion", "/v1/assertions/:assertion_id/check", {
      params: { assertion_id: AssertionId },
      payload: CheckAssertion,
      success: CheckedAssertion,
      error: [NotFound, RateLimited],
    }).annotate(OpenApi.Summary, "Check a passkey's signature, a one-time code or a recovery code"),
  )
  .middleware(RequestValidation)
  .middleware(Verifying)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotate(SecretRequest, true)
  .annotateMerge(OpenApi.annotations({
    title: "Assertions",
    description: "What people have enrolled here, checked for the issuers that sign them in.",
  })) {}
