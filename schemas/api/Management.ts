/**
 * Who sends a request of the identity API: the bearer of an access token (RFC 9068) for the audience
 * `service-management`, in the Authorization header and nowhere else.
 *
 * A person is found by (issuer, subject), must be active, and their session must stand; whatever is wrong, the answer is
 * the same 401. What they may do is read where it is decided, never taken from the token. The rate limit of the principal
 * comes next, then validation.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { Assurance } from "../identity/Assurance.ts"
import { DependencyUnavailable, RateLimited } from "../problems/Floor.ts"
import { InvalidToken } from "../problems/Identity.ts"

/** Who was recognised, and how they signed in. Times in seconds since the epoch. */
export class Caller extends Context.Service<Caller, {
  /** `person:<id>` or `service:<issuer> <client_id>`: what receipts, limits and the audit know them by. */
  readonly principal: string
  readonly via: "person" | "service"
  /** Canonical: of those who were merged, the one that stands. Null for a service. */
  readonly personId: string | null
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  /** The issuer's session, where the token names one. */
  readonly sid: string | null
  readonly jti: string
  /** When they last proved who they are; null where the issuer does not say. */
  readonly authTime: number | null
  readonly acr: string | null
  readonly amr: ReadonlyArray<string>
  /** What `acr` means, no higher than the issuer is trusted. */
  readonly aal: Assurance
  readonly issuedAt: number
  readonly expiresAt: number
}>()("bailiwick/schemas/api/Management/Caller") {}

/**
 * Of an operation whose command recognises its caller itself, in the statement that loads what it decides on
 * (`keyedFenced` in src/http/handlers/Keyed.ts). No other operation may say so: its caller would not be asked for.
 */
export class RecognisedByCommand
  extends Context.Reference<boolean>("bailiwick/schemas/api/Management/RecognisedByCommand", {
    defaultValue: () => false,
  }) {}

/** Declared after `Floor`: `HttpApiGroup.make("me").add(...).middleware(Floor).middleware(Managed)`. */
export class Managed extends HttpApiMiddleware.Service<Managed, { provides: Caller }>()(
  "bailiwick/schemas/api/Management/Managed",
  {
    security: {
      management: HttpApiSecurity.bearer.pipe(
        HttpApiSecurity.annotate(
          OpenApi.Description,
          "An access token (RFC 9068) of a configured issuer for the audience `service-management`.",
        ),
      ),
    },
    error: [InvalidToken, RateLimited, DependencyUnavailable],
  },
) {}
