/**
 * Signs people in at the console's issuers: OpenID Connect's authorization code flow with PKCE (RFC 6749, RFC 7636),
 * by openid-client over `Outbound`.
 *
 * A sign-in under way is kept by the browser alone, in a cookie sealed by the Vault: it holds the code's verifier, the
 * nonce and the return path. The `state` of the authorization request is bound into the seal, so the cookie opens only
 * for the answer to its own request. An answer with an `iss` of another issuer is refused (RFC 9207).
 *
 * The issuer's metadata are fetched when first needed and kept for ten minutes. ID tokens are verified by signature as
 * well, although they come from the issuer itself: an issuer on loopback has no TLS.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { Configuration, CustomFetch, TokenEndpointResponse, TokenEndpointResponseHelpers } from "openid-client"
import { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { Outbound } from "../platform/Outbound.ts"
import { type Sealed, Vault, type VaultCell } from "../platform/security/Vault.ts"
import type { ConsoleIssuer } from "./ConfiguredConsoleIssuer.ts"

/** The library is loaded when the first person signs in. */
const library = Effect.promise(() => import("openid-client"))

/** The tokens of one sign-in. Times in milliseconds since the epoch. */
export interface Tokens {
  readonly access: string
  readonly refresh: string | null
  readonly id: string
  /** When the access token expires; null where the issuer does not say. */
  readonly until: number | null
}

/** A completed sign-in. `authTime` in seconds since the epoch. */
export interface SignedIn {
  readonly issuer: string
  readonly subject: string
  readonly authTime: number | null
  readonly tokens: Tokens
  readonly returnTo: string
  /** The session whose person proves another identity by this sign-in; null for a sign-in to the console. */
  readonly linksSession: string | null
  /** The session whose holder signs in once more (a step-up); null for any other sign-in. */
  readonly stepsUp: string | null
}

/** A sign-in that did not succeed: `code` is OAuth's, or `refused` for anything else. */
export class SignInFailed extends Schema.TaggedError<SignInFailed>()("SignInFailed", { code: Schema.String }) {}

export interface Asked {
  readonly issuer: string
  /** The path in the console that the browser returns to. */
  readonly returnTo: string
  /** For a step-up (RFC 9470): the levels of which one must be reached, and the highest age in seconds. */
  readonly acrValues: string | null
  readonly maxAge: number | null
  /** The session whose person proves another identity: the issuer asks anew who signs in. Null for a sign-in. */
  readonly linksSession: string | null
  /**
   * The session whose holder signs in once more: the issuer asks anew who signs in, since its own session may be another
   * one's, who would come back without a word each time. Null for any other sign-in.
   */
  readonly stepsUp: string | null
  /** The name by which the issuer may know that holder (`login_hint`); null where none is known. */
  readonly loginHint: string | null
}

const Pending = Schema.fromJsonString(Schema.Struct({
  issuer: Schema.String,
  verifier: Schema.String,
  nonce: Schema.String,
  returnTo: Schema.String,
  maxAge: Schema.NullOr(Schema.Finite),
  // Not in the cookie of a program of an earlier version.
  linksSession: Schema.optionalKey(Schema.NullOr(Schema.String)),
  stepsUp: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** When the sign-in is given up, in milliseconds since the epoch. */
  until: Schema.Finite,
}))
type Pending = typeof Pending.Type
const encodePending = Schema.encodeSync(Pending)
const decodePending = Schema.decodeUnknownSync(Pending)

/** How long a sign-in may take. */
export const signInMillis = 600_000

/** A cookie has no row: its seal names the request's state instead. */
const cellOf = (state: string): VaultCell => ({ table: "console_sign_ins", column: "cookie", row: state })

const cookieOf = ({ bytes, kid }: Sealed) => `${kid}.${Buffer.from(bytes).toString("base64url")}`

const sealedIn = (cookie: string): Sealed | null => {
  const dot = cookie.lastIndexOf(".")
  return dot < 1
    ? null
    : { kid: cookie.slice(0, dot), bytes: new Uint8Array(Buffer.from(cookie.slice(dot + 1), "base64url")) }
}

/** The issuer did not answer. */
class Unreachable extends Error {}

const isUnreachable = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof Error && isUnreachable(error.cause))

const member = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined

/** OAuth's error code of a failure, where it has one; else `refused`. */
const codeIn = (error: unknown): string => {
  const code = member(error, "error")
  return typeof code === "string" && /^[a-z_]{1,64}$/.test(code) ? code : "refused"
}

const unavailable = new DependencyUnavailable({ detail: "The issuer does not answer now: try again" })

/** Runs a step of the library. */
const step = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (error) => error }).pipe(
    Effect.tapError((error) => Effect.logDebug("A step of a sign-in failed", error)),
    Effect.mapError((error) =>
      isUnreachable(error) || Number(member(error, "status")) >= 500
        ? unavailable
        : new SignInFailed({ code: codeIn(error) })
    ),
  )

/** Requests of the library, over `Outbound`. */
const fetching = Effect.gen(function* () {
  const outbound = yield* Outbound
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  return ((url, { body, headers, method }) =>
    run(
      outbound.ask(url, {
        trusted: true,
        method: method === "POST" ? "POST" : "GET",
        headers,
        ...(body === null || body === undefined ? {} : { body: String(body) }),
      }).pipe(
        // The library asks for JSON and parses it; `Outbound` returns no headers of answers.
        Effect.map(({ body, status }) =>
          new Response(status === 204 ? null : new Uint8Array(body), {
            status,
            headers: { "content-type": "application/json" },
          })
        ),
        Effect.mapError((error) => new Unreachable(`${error.host}: ${error.reason}`)),
      ),
    )) as CustomFetch
})

/** The configuration of a client, fetched when first needed and kept for ten minutes; a failure is not kept. */
const discovered = Effect.fnUntraced(function* ({ clientId, clientSecret, issuer }: ConsoleIssuer) {
  const fetch = yield* fetching
  const discover = Effect.gen(function* () {
    const oidc = yield* library
    const secret = clientSecret === null ? null : Redacted.value(clientSecret)
    return yield* step(() =>
      oidc.discovery(
        new URL(issuer),
        clientId,
        undefined,
        secret === null ? oidc.None() : (server, client, body, headers) => {
          const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]
          const by = methods.includes("client_secret_basic") ? oidc.ClientSecretBasic : oidc.ClientSecretPost
          return by(secret)(server, client, body, headers)
        },
        {
          [oidc.customFetch]: fetch,
          execute: [
            oidc.enableNonRepudiationChecks,
            // The configuration admits plain http on loopback only.
            ...(issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : []),
          ],
        },
      )
    )
  })
  const [kept, forget] = yield* Effect.cachedInvalidateWithTTL(discover, "10 minutes")
  return Effect.tapError(kept, () => forget)
})

type Answer = TokenEndpointResponse & TokenEndpointResponseHelpers

/** The tokens of an answer; `before`: the ID token of the sign-in, which a refresh need not repeat. */
const tokensIn = (answer: Answer, now: number, before: string | null): Tokens => {
  const seconds = answer.expiresIn()
  return {
    access: answer.access_token,
    refresh: answer.refresh_token ?? null,
    id: answer.id_token ?? before ?? "",
    until: seconds === undefined ? null : now + seconds * 1_000,
  }
}

interface Known extends ConsoleIssuer {
  readonly configuration: Effect.Effect<Configuration, SignInFailed | DependencyUnavailable>
}

export class OpenIdClient extends Context.Service<OpenIdClient, {
  /** The issuers of the configuration, as the sign-in page offers them. */
  readonly issuers: ReadonlyArray<{ readonly issuer: string; readonly name: string }>
  /** Begins a sign-in: the address to send the browser to, and the cookie to send with it. */
  readonly begin: (
    asked: Asked,
  ) => Effect.Effect<
    { readonly location: URL; readonly cookie: Redacted.Redacted },
    SignInFailed | DependencyUnavailable
  >
  /** Completes it by the query of the browser's return and the cookie; the code is redeemed once, by the issuer. */
  readonly complete: (
    query: URLSearchParams,
    cookie: string | undefined,
  ) => Effect.Effect<SignedIn, SignInFailed | DependencyUnavailable>
  /** New tokens by a refresh token. SignInFailed where the issuer's session has ended. */
  readonly refresh: (
    issuer: string,
    tokens: Tokens & { readonly refresh: string },
  ) => Effect.Effect<Tokens, SignInFailed | DependencyUnavailable>
  /**
   * Revokes the refresh token (RFC 7009), and gives the address at which the issuer ends its own session (RP-initiated
   * logout); null where it has none, or does not answer. Never fails.
   */
  readonly signOut: (issuer: string, tokens: Tokens) => Effect.Effect<URL | null>
}>()("bailiwick/services/console/OpenIdClient") {
  /** `publicUrl` is the origin under which browsers reach this program. */
  static readonly layer = (issuers: ReadonlyArray<ConsoleIssuer>, publicUrl: URL) =>
    Layer.effect(OpenIdClient, make(issuers, publicUrl))
}

const make = Effect.fnUntraced(function* (issuers: ReadonlyArray<ConsoleIssuer>, publicUrl: URL) {
  const vault = yield* Vault
  const known = new Map<string, Known>()
  for (const one of issuers) known.set(one.issuer, { ...one, configuration: yield* discovered(one) })
  const redirectUri = new URL("/console/callback", publicUrl).href

  const knownBy = (issuer: string) => {
    const found = known.get(issuer)
    return found === undefined ? Effect.fail(new SignInFailed({ code: "unknown_issuer" })) : Effect.succeed(found)
  }

  const open = (cookie: string, state: string): Pending | null => {
    const sealed = sealedIn(cookie)
    if (sealed === null) return null
    try {
      return decodePending(Redacted.value(vault.open(sealed, cellOf(state))))
    } catch {
      // A cookie of another request, or one that was made up: any client can send one.
      return null
    }
  }

  const begin = Effect.fn("OpenIdClient.begin")(function* (asked: Asked) {
    const { acrValues, issuer, linksSession, loginHint, maxAge, returnTo, stepsUp } = asked
    const { configuration, resource, scope } = yield* knownBy(issuer)
    const oidc = yield* library
    const server = yield* configuration
    const [verifier, nonce, state] = [oidc.randomPKCECodeVerifier(), oidc.randomNonce(), oidc.randomState()]
    const until = (yield* Clock.currentTimeMillis) + signInMillis
    const challenge = yield* Effect.promise(() => oidc.calculatePKCECodeChallenge(verifier))
    const location = oidc.buildAuthorizationUrl(server, {
      redirect_uri: redirectUri,
      scope,
      state,
      nonce,
      code_challenge: challenge,
      code_challenge_method: "S256",
      ...(resource === null ? {} : { resource }),
      ...(acrValues === null ? {} : { acr_values: acrValues }),
      ...(maxAge === null ? {} : { max_age: String(maxAge) }),
      ...(linksSession === null && stepsUp === null ? {} : { prompt: "login" }),
      ...(loginHint === null ? {} : { login_hint: loginHint }),
    })
    const pending = { issuer, verifier, nonce, returnTo, maxAge, linksSession, stepsUp, until }
    const text = Redacted.make(encodePending(pending))
    const cookie = cookieOf(vault.seal(text, cellOf(state)))
    return { location, cookie: Redacted.make(cookie, { label: "sign-in" }) }
  })

  const complete = Effect.fn("OpenIdClient.complete")(
    function* (query: URLSearchParams, cookie: string | undefined) {
      const state = query.get("state") ?? ""
      const pending = cookie === undefined ? null : open(cookie, state)
      const now = yield* Clock.currentTimeMillis
      if (pending === null || pending.until <= now) return yield* new SignInFailed({ code: "not_begun" })
      const { issuer, maxAge, nonce, returnTo, verifier } = pending
      const { configuration, resource } = yield* knownBy(issuer)
      const oidc = yield* library
      const server = yield* configuration
      const answer = yield* step(() =>
        oidc.authorizationCodeGrant(
          server,
          new URL(`${redirectUri}?${query}`),
          {
            pkceCodeVerifier: verifier,
            expectedNonce: nonce,
            expectedState: state,
            idTokenExpected: true,
            ...(maxAge === null ? {} : { maxAge }),
          },
          resource === null ? {} : { resource },
        )
      )
      const { auth_time, sub } = answer.claims()!
      return {
        issuer,
        subject: sub,
        authTime: auth_time ?? null,
        tokens: tokensIn(answer, now, null),
        returnTo,
        linksSession: pending.linksSession ?? null,
        stepsUp: pending.stepsUp ?? null,
      }
    },
  )

  const refresh = Effect.fn("OpenIdClient.refresh")(
    function* (issuer: string, tokens: Tokens & { readonly refresh: string }) {
      const { configuration, resource } = yield* knownBy(issuer)
      const oidc = yield* library
      const server = yield* configuration
      const now = yield* Clock.currentTimeMillis
      const answer = yield* step(() =>
        oidc.refreshTokenGrant(server, tokens.refresh, resource === null ? {} : { resource })
      )
      const next = tokensIn(answer, now, tokens.id)
      // An issuer that does not rotate refresh tokens repeats none.
      return next.refresh === null ? { ...next, refresh: tokens.refresh } : next
    },
  )

  const signOut = Effect.fn("OpenIdClient.signOut")(
    function* (issuer: string, { id, refresh }: Tokens) {
      const { configuration } = yield* knownBy(issuer)
      const oidc = yield* library
      const server = yield* configuration
      const { end_session_endpoint, revocation_endpoint } = server.serverMetadata()
      if (refresh !== null && revocation_endpoint !== undefined) {
        yield* Effect.ignore(step(() => oidc.tokenRevocation(server, refresh, { token_type_hint: "refresh_token" })))
      }
      if (end_session_endpoint === undefined) return null
      const parameters = { post_logout_redirect_uri: new URL("/console/", publicUrl).href, id_token_hint: id }
      return oidc.buildEndSessionUrl(server, parameters)
    },
    Effect.orElseSucceed(() => null),
  )

  return OpenIdClient.of({
    issuers: issuers.map(({ issuer, name }) => ({ issuer, name: name ?? new URL(issuer).host })),
    begin,
    complete,
    refresh,
    signOut,
  })
})
