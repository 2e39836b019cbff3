/**
 * Verifies access tokens (RFC 9068): JWTs of a configured issuer for one audience of this program. One verifier for the
 * credential class, whatever the audience: the management API has one, the lifecycle endpoints have another.
 *
 * A token made for another use is refused: another `typ` (ID tokens, cookies, security events), `nonce` or `at_hash`
 * (ID tokens), symmetric or no signature. Time claims have 60 s of skew; an `auth_time` in the future is refused, since
 * it would count as fresh until then. A token whose lifetime is longer than `max_lifetime` is refused as well: if it
 * leaked, only its issuer could end it. A token whose subject is its client speaks for a service, never for a person
 * (RFC 9068, 5). The level of the sign-in follows from the issuer's `acr`, and is at most the level that the issuer is
 * trusted for.
 */
import { Clock, Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { type Assurance, AssuranceLevel, defaultAcrMap } from "../../schemas/identity/Assurance.ts"
import type { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { InvalidToken } from "../../schemas/problems/IdentityProblems.ts"
import { maxCodePoints, storable } from "../../schemas/Validation/Scalars.ts"
import { issuerOf, keysAt, type KeySource, verified } from "../platform/security/KeySets.ts"
import { counted } from "../platform/MapSizes.ts"
import type { Outbound } from "../platform/Outbound.ts"
import { remembered } from "./TokenCache.ts"
import { type ConfiguredTokenIssuer, TokenAlgorithm } from "./ConfiguredTokenIssuer.ts"

/** The audience of the management API's tokens. */
export const managementAudience = "service-management"

export interface TokenIssuer {
  readonly keys: KeySource
  readonly algorithms?: ReadonlyArray<TokenAlgorithm> | undefined
  readonly acrMap?: Readonly<Record<string, AssuranceLevel>> | undefined
  /** The highest level that this issuer is trusted for. */
  readonly maxAal?: AssuranceLevel | undefined
  /** The longest time from `iat` to `exp`; 24 hours by default. */
  readonly maxLifetime?: Duration.Duration | undefined
}

/** Finds an issuer by its name. */
export type TokenIssuers = (issuer: string) => TokenIssuer | undefined

/** The issuers of the configuration, their keys fetched when first needed. */
export const configuredTokenIssuers = Effect.fnUntraced(
  function* (issuers: ReadonlyArray<ConfiguredTokenIssuer>): Effect.fn.Return<TokenIssuers, never, Outbound> {
    const known = new Map<string, TokenIssuer>()
    for (const { acr_map, algorithms, issuer, jwks_uri, max_aal, max_lifetime } of issuers) {
      const keys = yield* keysAt(jwks_uri)
      known.set(issuer, { keys, algorithms, acrMap: acr_map, maxAal: max_aal, maxLifetime: max_lifetime })
    }
    return (issuer) => known.get(issuer)
  },
)

/** The claims of a valid token. Times in seconds since 1970. */
export interface AccessToken {
  readonly via: "person" | "service"
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  readonly jti: string
  readonly sid: string | null
  readonly authTime: number | null
  readonly acr: string | null
  readonly amr: ReadonlyArray<string>
  readonly aal: Assurance
  readonly issuedAt: number
  readonly expiresAt: number
}

/**
 * The time that is compared with the cut-off of ended sessions: the sign-in, or the token's issue where that is absent.
 */
export const signedInAt = ({ authTime, issuedAt }: Pick<AccessToken, "authTime" | "issuedAt">): Date =>
  new Date((authTime ?? issuedAt) * 1_000)

/**
 * A name that tells a sign-in from all others of its person at an issuer: the session's, or, where the issuer names no
 * session, one made of the time, which no session can have as its name.
 */
export const signInOf = ({ authTime, sid }: Pick<AccessToken, "authTime" | "sid">): string => sid ?? `\u0001${authTime}`

const skew = 60
const maxToken = 8 * 1024
/** The longest life of a token whose issuer has no `max_lifetime`. */
export const defaultLifetime = Duration.hours(24)
const foreign = ["nonce", "at_hash"]
const required = ["iss", "aud", "exp", "iat", "jti", "client_id", "sub"]

// These texts become rows and log fields: no control characters, and nothing that a database cannot hold.
const Text = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]+$/u), storable)
const Name = Text.check(maxCodePoints(255))
const Seconds = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_799 }))

const Claims = Schema.Struct({
  iss: Text.check(Schema.isPattern(/^\S+$/)),
  sub: Text,
  client_id: Name,
  jti: Name,
  exp: Seconds,
  iat: Seconds,
  sid: Schema.optionalKey(Name),
  auth_time: Schema.optionalKey(Seconds),
  acr: Schema.optionalKey(Name),
  amr: Schema.optionalKey(Schema.Array(Name)),
})
const decodeClaims = Schema.decodeUnknownEffect(Claims)

const levelOf = (acr: string | undefined, issuer: TokenIssuer): Assurance => {
  const { acrMap = defaultAcrMap, maxAal = "aal3" } = issuer
  const level = acr === undefined || !Object.hasOwn(acrMap, acr) ? undefined : acrMap[acr]
  if (level === undefined) return "unknown"
  return level > maxAal ? maxAal : level
}

export interface AccessTokenOptions {
  /** The audience that `aud` must contain. */
  readonly audience: string
  readonly issuers: TokenIssuers
}

/** Makes the verifier of one audience's tokens; its cache is counted in `MapSizes` until its scope ends. */
export const accessTokens = Effect.fnUntraced(function* (
  { audience, issuers }: AccessTokenOptions,
): Effect.fn.Return<AccessTokens["Service"], never, Scope.Scope> {
  const refused = Effect.fail(new InvalidToken())

  const known = remembered<AccessToken>()
  yield* counted(`verified tokens, ${audience}`, known.size)

  const checked = Effect.fnUntraced(function* (token: string): Effect.fn.Return<
    AccessToken,
    InvalidToken | DependencyUnavailable
  > {
    const name = issuerOf(token)
    const issuer = name === null ? undefined : issuers(name)
    if (name === null || issuer === undefined) return yield* refused
    const { payload } = (yield* verified(token, issuer.keys, {
      issuer: name,
      audience,
      typ: "at+jwt",
      algorithms: [...(issuer.algorithms ?? TokenAlgorithm.literals)],
      clockTolerance: skew,
      requiredClaims: required,
    })) ?? (yield* refused)
    if (foreign.some((claim) => claim in payload)) return yield* refused
    const claims = yield* Effect.catch(decodeClaims(payload), () => refused)
    const now = (yield* Clock.currentTimeMillis) / 1000
    // An `iat` in the future must not allow a longer lifetime.
    const lifetime = claims.exp - Math.min(claims.iat, now + skew)
    if (lifetime > Duration.toSeconds(issuer.maxLifetime ?? defaultLifetime)) return yield* refused
    const authTime = claims.auth_time ?? null
    if (authTime !== null && authTime > now + skew) return yield* refused
    return {
      via: claims.sub === claims.client_id ? "service" : "person",
      issuer: claims.iss,
      subject: claims.sub,
      clientId: claims.client_id,
      jti: claims.jti,
      sid: claims.sid ?? null,
      authTime,
      acr: claims.acr ?? null,
      amr: claims.amr ?? [],
      aal: levelOf(claims.acr, issuer),
      issuedAt: claims.iat,
      expiresAt: claims.exp,
    }
  })

  // Runs for each request: Effect.fn would take a stack trace at each call.
  const verify = Effect.fnUntraced(function* (token: string) {
    if (token.length > maxToken) return yield* refused
    const key = known.keyOf(token)
    const millis = yield* Clock.currentTimeMillis
    const found = known.find(key, millis)
    if (found !== undefined) return found
    const good = yield* checked(token)
    known.keep(key, good, millis, (good.expiresAt + skew) * 1_000)
    return good
  })
  return { verify }
})

/** Tokens of the management API (`aud` `service-management`). */
export class AccessTokens extends Context.Service<AccessTokens, {
  /**
   * The claims of a token, verified. InvalidToken where anything is wrong with the token; DependencyUnavailable only
   * where the issuer's keys were never fetched.
   */
  readonly verify: (token: string) => Effect.Effect<AccessToken, InvalidToken | DependencyUnavailable>
}>()("bailiwick/services/people/AccessTokens") {
  static readonly layer = (issuers: TokenIssuers) =>
    Layer.effect(AccessTokens, accessTokens({ audience: managementAudience, issuers }))
}
