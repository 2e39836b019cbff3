/**
 * How a request of the mail API says who sends it: `Authorization: Bearer mail_k_…`, or the `mail_session` cookie. The
 * Authorization header decides where both are sent; whatever is wrong with a credential, the answer is the same 401.
 * Next in order, and only by cookie, comes the CSRF rule; then the account's limits of reads and writes a minute.
 *
 * `Authenticated` has asked the database before the handler runs. `Presented` is for hot reads: it gives the handler a
 * well-formed credential that is not checked yet, to be joined into the handler's own statement; where the rest of the
 * request does not decode, it asks alone, so that 401 comes before 422.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { Plan } from "../mail/Account.ts"
import { CsrfRejected, DependencyUnavailable, InvalidCredentials, RateLimited } from "../problems/Floor.ts"

/** What was presented, parsed. Nobody knows yet whether its account is active, or its key still stands. */
export class Credential extends Context.Service<
  Credential,
  /** `hash` is the SHA-256 that the key is stored by. */
  | { readonly via: "key"; readonly hash: Uint8Array }
  /** Of a verified cookie. `authTime` is in seconds since the epoch, or null where the issuer did not say. */
  | { readonly via: "cookie"; readonly accountId: string; readonly authTime: number | null }
>()("bailiwick/schemas/api/Credentials/Credential") {}

/** An active account that was recognised, and by what. */
export class Principal extends Context.Service<Principal, {
  readonly accountId: string
  readonly plan: Plan
  readonly platformAdmin: boolean
  readonly via: "key" | "cookie"
  readonly keyId: string | null
  /** When the person last proved who they are, in seconds since the epoch; null by key or where it is not known. */
  readonly authTime: number | null
}>()("bailiwick/schemas/api/Credentials/Principal") {}

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

const error = [InvalidCredentials, CsrfRejected, RateLimited, DependencyUnavailable] as const

export class Authenticated extends HttpApiMiddleware.Service<Authenticated, { provides: Principal }>()(
  "bailiwick/schemas/api/Credentials/Authenticated",
  { security, error },
) {}

export class Presented extends HttpApiMiddleware.Service<Presented, { provides: Credential }>()(
  "bailiwick/schemas/api/Credentials/Presented",
  { security, error },
) {}
