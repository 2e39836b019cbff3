/**
 * The issuer of the demo and of tests: signs session cookies of the mail API, access tokens (RFC 9068) of the other
 * APIs, and what its authorization code flow hands out (src/http/dev/DevIssuer.ts). Its ES256 key is in the home,
 * readable by this user alone. A user who can read the home can act as any other, so only DEMO on loopback trusts this
 * key.
 */
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWTPayload,
  SignJWT,
} from "jose"
import { randomUUID } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { CookieIssuer } from "../../services/authentication/Cookies.ts"
import { managementAudience, type TokenIssuer } from "../../services/people/AccessTokens.ts"
import { fixedKeys, verified } from "../../services/platform/security/KeySets.ts"
import { writePrivate } from "./Home.ts"

const PrivateKey = Schema.fromJsonString(Schema.Struct({
  kty: Schema.Literal("EC"),
  crv: Schema.Literal("P-256"),
  x: Schema.String,
  y: Schema.String,
  d: Schema.String,
  kid: Schema.String,
}))

/** The name of the key's file in the home. */
export const issuerKeyFile = "issuer-key.json"

export interface SessionRequest {
  readonly accountId: string
  /** When the person last proved who they are, in seconds since the epoch; now where it is left out. */
  readonly authTime?: number | undefined
  /** How long the session lasts; an hour where it is left out. */
  readonly ttl?: Duration.Input | undefined
}

export interface AccessTokenRequest {
  /** The `iss` of the token; the issuer's own name where it is left out. */
  readonly issuer?: string | undefined
  readonly subject: string
  /** The same as the subject for a service. */
  readonly clientId: string
  /** `service-management` where it is left out. */
  readonly audience?: string | ReadonlyArray<string> | undefined
  readonly sid?: string | undefined
  readonly acr?: string | undefined
  readonly amr?: ReadonlyArray<string> | undefined
  /**
   * In seconds since the epoch; null: no such claim. Where it is left out: now for a person, no claim for a service.
   */
  readonly authTime?: number | null | undefined
  /** How long the token lasts; ten minutes where it is left out. */
  readonly ttl?: Duration.Input | undefined
}

/** Any other token of the issuer, for one audience: its codes, refresh tokens and ID tokens. */
export interface SignedClaims {
  /** The `typ` in the header, which keeps one kind of token from being taken for another. */
  readonly typ: string
  readonly subject: string
  readonly audience: string
  readonly claims: JWTPayload
  readonly ttl: Duration.Input
}

export class EmbeddedIssuer extends Context.Service<EmbeddedIssuer, {
  readonly issuer: string
  /** The key set that `/dev/issuer/jwks` serves. */
  readonly jwks: JSONWebKeySet
  /** For `Cookies.layer`: verifies with the public key, without a request to ourselves. */
  readonly cookieIssuer: CookieIssuer
  /** The value of a `mail_session` cookie. */
  readonly mintSession: (session: SessionRequest) => Effect.Effect<string>
  /** For `AccessTokens.layer`: with DEMO its key is accepted for every issuer in the directory. */
  readonly tokenIssuer: TokenIssuer
  /** An access token. */
  readonly mintAccessToken: (token: AccessTokenRequest) => Effect.Effect<string>
  /** A token of another kind, with a `jti`. */
  readonly mint: (token: SignedClaims) => Effect.Effect<string>
  /** The claims of a token of `mint`, of this kind and audience and not expired; null for any other text. */
  readonly read: (token: string, typ: string, audience: string) => Effect.Effect<JWTPayload | null>
}>()("bailiwick/src/embedded/EmbeddedIssuer") {
  /** The issuer of a home, whose key is made where it is missing; `issuer` is the `iss` of its tokens. */
  static readonly layer = (options: { readonly home: string; readonly issuer: string }) =>
    Layer.effect(EmbeddedIssuer, make(options))
}

const create = Effect.fnUntraced(function* (path: string) {
  const jwk = yield* Effect.promise(async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true })
    const key = await exportJWK(privateKey)
    return { ...key, kid: await calculateJwkThumbprint(key) }
  })
  yield* Effect.sync(() => writePrivate(path, `${JSON.stringify(jwk)}\n`))
})

interface Signing {
  readonly typ: string
  readonly issuer: string
  readonly subject: string
  readonly audience: string | ReadonlyArray<string>
  readonly claims: JWTPayload
  readonly ttl: Duration.Input
}

const make = Effect.fnUntraced(function* ({ home, issuer }: { readonly home: string; readonly issuer: string }) {
  const path = join(home, issuerKeyFile)
  if (!existsSync(path)) yield* create(path)
  const jwk = yield* Effect.orDie(Schema.decodeUnknownEffect(PrivateKey)(readFileSync(path, "utf8")))
  const { d: _, ...open } = jwk
  const jwks: JSONWebKeySet = { keys: [{ ...open, alg: "ES256", use: "sig" }] }
  const keys = fixedKeys(jwks)
  const key = yield* Effect.promise(() => importJWK(jwk, "ES256"))
  const seconds = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1_000))

  const sign = Effect.fnUntraced(function* ({ audience, claims, issuer, subject, ttl, typ }: Signing) {
    const now = yield* seconds
    const token = new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: jwk.kid, typ })
      .setIssuer(issuer)
      .setSubject(subject)
      .setAudience(typeof audience === "string" ? audience : [...audience])
      .setIssuedAt(now)
      .setExpirationTime(now + Math.floor(Duration.toSeconds(ttl)))
    return yield* Effect.promise(() => token.sign(key))
  })

  const mintSession = Effect.fn("EmbeddedIssuer.mintSession")(function* ({ accountId, authTime, ttl }: SessionRequest) {
    const claims = { auth_time: authTime ?? (yield* seconds) }
    return yield* sign({ typ: "JWT", issuer, subject: accountId, audience: "mail", claims, ttl: ttl ?? "1 hour" })
  })

  const mintAccessToken = Effect.fn("EmbeddedIssuer.mintAccessToken")(function* (asked: AccessTokenRequest) {
    const { acr, amr, audience = managementAudience, clientId, sid, subject, ttl = "10 minutes" } = asked
    const authTime = asked.authTime === undefined ? subject === clientId ? null : yield* seconds : asked.authTime
    const claims = {
      jti: randomUUID(),
      client_id: clientId,
      ...(authTime === null ? {} : { auth_time: authTime }),
      ...(sid === undefined ? {} : { sid }),
      ...(acr === undefined ? {} : { acr }),
      ...(amr === undefined ? {} : { amr: [...amr] }),
    }
    return yield* sign({ typ: "at+jwt", issuer: asked.issuer ?? issuer, subject, audience, claims, ttl })
  })

  const mint = Effect.fn("EmbeddedIssuer.mint")(function* ({ claims, ...token }: SignedClaims) {
    return yield* sign({ ...token, issuer, claims: { jti: randomUUID(), ...claims } })
  })

  const read = Effect.fn("EmbeddedIssuer.read")(function* (token: string, typ: string, audience: string) {
    const found = yield* verified(token, keys, { issuer, audience, typ, algorithms: ["ES256"] })
    return found === null ? null : found.payload
  }, Effect.orDie)

  return EmbeddedIssuer.of({
    issuer,
    jwks,
    cookieIssuer: { issuer, keys, algorithms: ["ES256"] },
    mintSession,
    tokenIssuer: { keys, algorithms: ["ES256"] },
    mintAccessToken,
    mint,
    read,
  })
})
