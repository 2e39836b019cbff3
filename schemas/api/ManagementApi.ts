/**
 * Authentication of the identity API: an access token (RFC 9068) for the audience `service-management`, in the
 * Authorization header. A session of the web console stands for the token of its sign-in, under the CSRF rule.
 *
 * A person is found by (issuer, subject), must be active, and the session must not have ended; every fault has the same
 * answer, 401. The caller's rights are read where a command is decided, never taken from the token. The rate limit of
 * the principal comes next, then the refusal of an auditor's write, then validation.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { PersonId } from "../BrandedIds.ts"
import type { Assurance } from "../identity/Assurance.ts"
import { ConsoleReadOnly, CsrfRejected, DependencyUnavailable, RateLimited } from "../problems/HttpProblems.ts"
import { AuditorReadsOnly, InvalidToken } from "../problems/IdentityProblems.ts"

/** The authenticated caller and its sign-in. Times in seconds since the epoch. */
export class Caller extends Context.Service<Caller, {
  /** `person:<id>` or `service:<issuer> <client_id>`: the caller in receipts, limits and the audit. */
  readonly principal: string
  readonly via: "person" | "service"
  /** The canonical person: after a merge, the person that remains. Null for a service. */
  readonly personId: PersonId | null
  /** The person is an auditor, who may only read. */
  readonly auditor: boolean
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  /** The issuer's session, where the token names one. */
  readonly sid: string | null
  readonly jti: string
  /** The last sign-in; null where the issuer does not state it. */
  readonly authTime: number | null
  readonly acr: string | null
  readonly amr: ReadonlyArray<string>
  /** The assurance level of `acr`, at most the level that the issuer is trusted for. */
  readonly aal: Assurance
  readonly issuedAt: number
  readonly expiresAt: number
}>()("bailiwick/schemas/api/ManagementApi/Caller") {}

/**
 * Annotates an operation whose command recognises its caller itself, in the statement that loads its data
 * (`keyedFenced` in IdempotentResponse.ts of src/http). On any other operation the caller would never be checked.
 */
export class RecognisedByCommand
  extends Context.Reference<boolean>("bailiwick/schemas/api/ManagementApi/RecognisedByCommand", {
    defaultValue: () => false,
  }) {}

/** Declared after `Floor`: `HttpApiGroup.make("me").add(...).middleware(Floor).middleware(Managed)`. */
export class Managed extends HttpApiMiddleware.Service<Managed, { provides: Caller }>()(
  "bailiwick/schemas/api/ManagementApi/Managed",
  {
    security: {
      management: HttpApiSecurity.bearer.pipe(
        HttpApiSecurity.annotate(
          OpenApi.Description,
          "An access token (RFC 9068) of a configured issuer for the audience `service-management`.",
        ),
      ),
    },
    error: [InvalidToken, CsrfRejected, ConsoleReadOnly, RateLimited, AuditorReadsOnly, DependencyUnavailable],
  },
) {}
