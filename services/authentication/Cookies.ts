/**
 * The `mail_session` cookie: a JWT of a configured issuer for the audience `mail`, whose `sub` is an account's id.
 *
 * It is one credential class with one verifier. A token made for another use is refused by its claims: `nonce`,
 * `at_hash` (ID tokens), `client_id` (access tokens), a second audience, another `typ`. Time claims have 60 s of skew;
 * an `auth_time` in the future is refused, since it would count as fresh until then.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { type AccountId, AccountUuid } from "../../schemas/BrandedIds.ts"
import { type DependencyUnavailable, InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { lowerCased } from "../../schemas/Wire.ts"
import { issuerOf, keysAt, type KeySource, verified } from "../platform/security/KeySets.ts"
import type { Outbound } from "../platform/Outbound.ts"
import { type ConfiguredIssuer, CookieAlgorithm } from "./ConfiguredIssuer.ts"

export interface CookieIssuer {
  readonly issuer: string
  readonly keys: KeySource
  readonly algorithms?: ReadonlyArray<CookieAlgorithm> | undefined
}

/** The issuers of the configuration, their keys fetched when first needed. */
export const configuredIssuers = Effect.forEach<ConfiguredIssuer, CookieIssuer, never, Outbound>(
  ({ issuer, jwks_uri, algorithms }) => Effect.map(keysAt(jwks_uri), (keys) => ({ issuer, keys, algorithms })),
)

/** The account and sign-in of a valid cookie; `authTime` in seconds since 1970. */
export interface Session {
  readonly accountId: AccountId
  readonly authTime: number | null
}

const skew = 60
const maxCookie = 4096
const audience = "mail"
const foreign = ["nonce", "at_hash", "client_id"]

const Claims = Schema.Struct({
  sub: AccountUuid,
  aud: Schema.Union([Schema.Literal(audience), Schema.Tuple([Schema.Literal(audience)])]),
  auth_time: Schema.optionalKey(Schema.Finite),
})
const decodeClaims = Schema.decodeUnknownEffect(Claims)

export class Cookies extends Context.Service<Cookies, {
  /** The session of a cookie's value. DependencyUnavailable only where the issuer's keys were never fetched. */
  readonly verify: (token: string) => Effect.Effect<Session, InvalidCredentials | DependencyUnavailable>
}>()("bailiwick/services/authentication/Cookies") {
  static readonly layer = (issuers: ReadonlyArray<CookieIssuer>) =>
    Layer.sync(Cookies, () => {
      const byName = new Map(issuers.map((issuer) => [issuer.issuer, issuer]))
      const refused = Effect.fail(new InvalidCredentials())

      const verify = Effect.fn("Cookies.verify")(function* (token: string) {
        if (token.length > maxCookie) return yield* refused
        const issuer = byName.get(issuerOf(token) ?? "")
        if (issuer === undefined) return yield* refused
        const { payload, protectedHeader } = (yield* verified(token, issuer.keys, {
          issuer: issuer.issuer,
          audience,
          algorithms: [...(issuer.algorithms ?? CookieAlgorithm.literals)],
          clockTolerance: skew,
          requiredClaims: ["exp", "sub"],
        })) ?? (yield* refused)
        const typ = protectedHeader.typ?.toLowerCase()
        if (typ !== undefined && typ !== "jwt") return yield* refused
        if (foreign.some((claim) => claim in payload)) return yield* refused
        const claims = yield* Effect.catch(decodeClaims(payload), () => refused)
        const authTime = claims.auth_time ?? null
        if (authTime !== null && authTime > (yield* Clock.currentTimeMillis) / 1000 + skew) return yield* refused
        return { accountId: lowerCased(claims.sub), authTime }
      })
      return Cookies.of({ verify })
    })
}
