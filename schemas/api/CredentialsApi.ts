/**
 * Authentication of the mail API: `Authorization: Bearer mail_k_…`, the `mail_session` cookie, or a session of the web
 * console that signed in as a mail account. The Authorization header decides where it is sent, else the console's
 * session; every fault of a credential has the same answer, 401. The CSRF rule comes next, for cookies only; then the
 * account's limits of reads and writes per minute.
 *
 * `Authenticated` checks the credential in the database before the handler runs. `Presented` is for fast reads: it
 * gives the handler a well-formed credential that is not checked yet, to be checked by the handler's own statement;
 * where the rest of the request does not decode, it checks the credential by itself, so that 401 comes before 422.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { AccountId, ApiKeyId } from "../BrandedIds.ts"
import type { Plan } from "../mail/MailAccount.ts"
import {
  ConsoleReadOnly,
  CsrfRejected,
  DependencyUnavailable,
  InvalidCredentials,
  RateLimited,
} from "../problems/HttpProblems.ts"

/** A parsed credential, before it is known whether its account is active and its key valid. */
export class Credential extends Context.Service<
  Credential,
  /** `hash` is the SHA-256 under which the key is stored. */
  | { readonly via: "key"; readonly hash: Uint8Array }
  /** From a verified cookie. `authTime` is in seconds since the epoch, or null where the issuer does not state it. */
  | { readonly via: "cookie"; readonly accountId: AccountId; readonly authTime: number | null }
>()("bailiwick/schemas/api/CredentialsApi/Credential") {}

/** An authenticated, active account, and its kind of credential. */
export class Principal extends Context.Service<Principal, {
  readonly accountId: AccountId
  readonly plan: Plan
  readonly platformAdmin: boolean
  readonly via: "key" | "cookie"
  readonly keyId: ApiKeyId | null
  /** The person's last sign-in, in seconds since the epoch; null with a key, or where it is not known. */
  readonly authTime: number | null
}>()("bailiwick/schemas/api/CredentialsApi/Principal") {}

/** The cookie of a signed-in person. */
export const sessionCookie = "mail_session"

const security = {
  bearer: HttpApiSecurity.bearer.pipe(
    HttpApiSecurity.annotate(OpenApi.Description, "An API key of the mail service, `mail_k_…`."),
  ),
  cookie: HttpApiSecurity.apiKey({ in: "cookie", key: sessionCookie }).pipe(
    HttpApiSecurity.annotate(OpenApi.Description, "A signed-in person's session: a JWT with the audience `mail`."),
  ),
}

const error = [InvalidCredentials, CsrfRejected, ConsoleReadOnly, RateLimited, DependencyUnavailable] as const

export class Authenticated extends HttpApiMiddleware.Service<Authenticated, { provides: Principal }>()(
  "bailiwick/schemas/api/CredentialsApi/Authenticated",
  { security, error },
) {}

export class Presented extends HttpApiMiddleware.Service<Presented, { provides: Credential }>()(
  "bailiwick/schemas/api/CredentialsApi/Presented",
  { security, error },
) {}
