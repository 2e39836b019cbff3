/**
 * The embedded issuer's endpoints, with DEMO only: discovery, keys, and an authorization code flow with PKCE (OpenID
 * Connect Core 1.0, 3.1; RFC 7636), so that the demo's people sign in to the console by the code that production runs.
 * Its sign-in page lies behind the dev key and offers every account and person of the demo, at two levels of assurance.
 *
 * It has one client, which is public, and no session of its own: each sign-in asks again, as `prompt=login` wants, and
 * `prompt=none` is refused. The page begins at the one whom `login_hint` names. Codes and refresh tokens are
 * signed by the home's key and work in a later process as well; a code works once in a process, for a minute.
 */
import { Clock, Effect, Layer, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash, randomUUID } from "node:crypto"
import { acrOf } from "../../../schemas/identity/Assurance.ts"
import { managementAudience } from "../../../services/people/AccessTokens.ts"
import { BoundedMap } from "../../../services/platform/BoundedMap.ts"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { demoAccounts } from "../../embedded/DemoDirectory.ts"
import { demoIssuer, demoPeople } from "../../embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../embedded/EmbeddedIssuer.ts"
import { readText } from "../edge/Body.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { isOwnForm } from "../pages/SameOriginForm.ts"
import { guarded } from "./DevKey.ts"
import { page } from "./DevPage.ts"

/** The embedded issuer's only client: the console. */
export const demoClientId = "bailiwick-console"

const paths = {
  discovery: "/dev/issuer/.well-known/openid-configuration",
  jwks: "/dev/issuer/jwks",
  authorize: "/dev/issuer/authorize",
  token: "/dev/issuer/token",
} as const

const levels = [
  { acr: acrOf("aal1"), amr: ["pwd"], label: "one factor (aal1)" },
  { acr: acrOf("aal2"), amr: ["pwd", "otp"], label: "two factors (aal2)" },
] as const

/**
 * The accounts and people that the page offers. An account is the subject itself; a person's access token names the issuer that the demo directory
 * knows the person by.
 */
const offered = [
  ...demoAccounts.map(({ email, id, name }) => ({
    subject: id,
    email,
    label: `${name}, ${email}`,
    access: { audience: "mail" },
  })),
  ...demoPeople.map(({ display_name, email, subject }) => ({
    subject,
    email,
    label: `${display_name}, ${email}`,
    access: { issuer: demoIssuer, audience: managementAudience },
  })),
]

const text = (longest: number) => Schema.String.check(Schema.isMaxLength(longest))

/** The parameters of an authorization request that this issuer understands. */
const Asked = Schema.Struct({
  response_type: Schema.Literal("code"),
  client_id: Schema.Literal(demoClientId),
  redirect_uri: text(512),
  state: text(512),
  code_challenge: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{43}$/)),
  code_challenge_method: Schema.Literal("S256"),
  scope: Schema.optionalKey(text(256)),
  nonce: Schema.optionalKey(text(256)),
  acr_values: Schema.optionalKey(text(256)),
  prompt: Schema.optionalKey(text(64)),
  login_hint: Schema.optionalKey(text(320)),
})
type Asked = typeof Asked.Type

/** The sign-in behind a code or a refresh token. */
const SignedIn = Schema.Struct({
  jti: Schema.String,
  sub: Schema.String,
  sid: Schema.String,
  auth_time: Schema.Finite,
  acr: Schema.Literals([levels[0].acr, levels[1].acr]),
})
type SignedIn = typeof SignedIn.Type

const Code = Schema.Struct({
  ...SignedIn.fields,
  redirect_uri: Schema.String,
  code_challenge: Schema.String,
  nonce: Schema.optionalKey(Schema.String),
})

const decodeAsked = Schema.decodeUnknownOption(Asked)
const decodeCode = Schema.decodeUnknownOption(Code)
const decodeSignedIn = Schema.decodeUnknownOption(SignedIn)

/** The kinds of tokens, as their headers name them. */
const kinds = { code: "code+jwt", refresh: "refresh+jwt", id: "JWT" } as const

const mostUsed = 1_000

/** The request, where it comes from the client and returns to it. */
const askedBy = (fields: URLSearchParams, redirectUri: string): Option.Option<Asked> =>
  Option.filter(decodeAsked(Object.fromEntries(fields)), ({ redirect_uri }) => redirect_uri === redirectUri)

const unknownRequest = refusing(
  "malformed_request",
  page({
    status: 400,
    title: "This sign-in was not asked for by the console",
    body: html`<p><a href="/console/">Open the console</a></p>`,
  }),
)

const returning = (asked: Asked, issuer: string, answer: Readonly<Record<string, string>>) => {
  const location = new URL(asked.redirect_uri)
  for (const [name, value] of Object.entries({ ...answer, state: asked.state, iss: issuer })) {
    location.searchParams.set(name, value)
  }
  return HttpServerResponse.empty({ status: 303, headers: { location: location.href } })
}

const hidden = (asked: Asked): ReadonlyArray<Html> =>
  Object.entries(asked).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

const choose = (asked: Asked) => {
  const wanted = (asked.acr_values ?? "").split(" ")
  const chosen = levels.findLast(({ acr }) => wanted.includes(acr)) ?? levels[0]
  return page({
    title: "Sign in to the console as",
    body: html`<form method="post" action="${paths.authorize}">${hidden(asked)}
<fieldset><legend>With</legend>${
      levels.map(({ acr, label }) =>
        html`
          <label><input type="radio" name="level" value="${acr}"${acr === chosen.acr
            ? html`
              checked
            `
            : ""}> ${label}</label>
        `
      )
    }</fieldset>
${
      offered.map(({ email, label, subject }) =>
        html`
          <p><button name="subject" value="${subject}"${email === asked.login_hint
            ? html`
              autofocus
            `
            : ""}>${label}</button></p>
        `
      )
    }</form>`,
  })
}

const discoveryOf = (issuer: string, publicUrl: URL) => ({
  issuer,
  jwks_uri: new URL(paths.jwks, publicUrl).href,
  authorization_endpoint: new URL(paths.authorize, publicUrl).href,
  token_endpoint: new URL(paths.token, publicUrl).href,
  response_types_supported: ["code"],
  response_modes_supported: ["query"],
  grant_types_supported: ["authorization_code", "refresh_token"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["ES256"],
  token_endpoint_auth_methods_supported: ["none"],
  code_challenge_methods_supported: ["S256"],
  acr_values_supported: levels.map(({ acr }) => acr),
  scopes_supported: ["openid"],
  prompt_values_supported: ["none", "login"],
  authorization_response_iss_parameter_supported: true,
})

const callbackOf = (publicUrl: URL) => new URL("/console/callback", publicUrl).href

const authorize = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { issuer } = yield* EmbeddedIssuer
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const asked = askedBy(new URL(url, publicUrl).searchParams, callbackOf(publicUrl))
    if (Option.isNone(asked)) return yield* unknownRequest
    return asked.value.prompt === "none"
      ? returning(asked.value, issuer, { error: "login_required" })
      : choose(asked.value)
  })

const codeFor = Effect.fnUntraced(function* (asked: Asked, subject: string, acr: string) {
  const { issuer, mint } = yield* EmbeddedIssuer
  const { code_challenge, nonce, redirect_uri } = asked
  const auth_time = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  const claims = { sid: randomUUID(), auth_time, acr, redirect_uri, code_challenge }
  return yield* mint({
    typ: kinds.code,
    subject,
    audience: issuer,
    claims: nonce === undefined ? claims : { ...claims, nonce },
    ttl: "1 minute",
  })
})

const enter = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { issuer } = yield* EmbeddedIssuer
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!isOwnForm(request, publicUrl)) {
      const body = html`<p>This did not come from our page.</p>`
      return yield* refusing("csrf_rejected", page({ status: 403, title: "Nobody was signed in", body }))
    }
    const fields = new URLSearchParams(yield* readText(request))
    const asked = askedBy(fields, callbackOf(publicUrl))
    const chosen = offered.find(({ subject }) => subject === fields.get("subject"))
    const level = levels.find(({ acr }) => acr === fields.get("level"))
    if (Option.isNone(asked) || chosen === undefined || level === undefined) return yield* unknownRequest
    return returning(asked.value, issuer, { code: yield* codeFor(asked.value, chosen.subject, level.acr) })
  })

/** The tokens of a sign-in; null where the demo does not know its subject any more. */
const tokensOf = Effect.fnUntraced(function* (signedIn: SignedIn, nonce: string | undefined) {
  const { issuer, mint, mintAccessToken } = yield* EmbeddedIssuer
  const { acr, auth_time, sid, sub: subject } = signedIn
  const found = offered.find((one) => one.subject === subject)
  if (found === undefined) return null
  const amr = [...levels.find((level) => level.acr === acr)!.amr]
  const claims = { sid, acr, amr, auth_time }
  return {
    access_token: yield* mintAccessToken({
      ...found.access,
      subject,
      clientId: demoClientId,
      sid,
      acr,
      amr,
      authTime: auth_time,
    }),
    token_type: "Bearer",
    expires_in: 600,
    scope: "openid",
    id_token: yield* mint({
      typ: kinds.id,
      subject,
      audience: demoClientId,
      claims: nonce === undefined ? claims : { ...claims, nonce },
      ttl: "10 minutes",
    }),
    refresh_token: yield* mint({ typ: kinds.refresh, subject, audience: issuer, claims, ttl: "8 hours" }),
  }
})

const byCode = Effect.fnUntraced(function* (fields: URLSearchParams, used: BoundedMap<string, true>) {
  const { issuer, read } = yield* EmbeddedIssuer
  const code = Option.getOrNull(decodeCode(yield* read(fields.get("code") ?? "", kinds.code, issuer)))
  const challenge = createHash("sha256").update(fields.get("code_verifier") ?? "").digest("base64url")
  if (
    code === null || used.has(code.jti) || fields.get("redirect_uri") !== code.redirect_uri ||
    challenge !== code.code_challenge
  ) return null
  used.set(code.jti, true)
  return yield* tokensOf(code, code.nonce)
})

const byRefreshToken = Effect.fnUntraced(function* (fields: URLSearchParams) {
  const { issuer, read } = yield* EmbeddedIssuer
  const claims = yield* read(fields.get("refresh_token") ?? "", kinds.refresh, issuer)
  const signedIn = Option.getOrNull(decodeSignedIn(claims))
  return signedIn === null ? null : yield* tokensOf(signedIn, undefined)
})

/** The token endpoint; `used` are the codes that worked once. */
const exchange = (used: BoundedMap<string, true>) =>
  Effect.gen(function* () {
    const fields = new URLSearchParams(yield* readText(yield* HttpServerRequest.HttpServerRequest))
    const refused = (error: string, status: number) => HttpServerResponse.jsonUnsafe({ error }, { status })
    if (fields.get("client_id") !== demoClientId) return refused("invalid_client", 401)
    const grant = fields.get("grant_type")
    if (grant !== "authorization_code" && grant !== "refresh_token") return refused("unsupported_grant_type", 400)
    const tokens = grant === "refresh_token" ? yield* byRefreshToken(fields) : yield* byCode(fields, used)
    return tokens === null ? refused("invalid_grant", 400) : HttpServerResponse.jsonUnsafe(tokens)
  })

/** The routes; `publicUrl` is the origin under which browsers, and this program, reach them. */
export const layer = (publicUrl: URL) =>
  Layer.unwrap(Effect.gen(function* () {
    const embedded = yield* EmbeddedIssuer
    const by = Effect.provideService(EmbeddedIssuer, embedded)
    const used = new BoundedMap<string, true>(mostUsed)
    const discovery = Effect.sync(() => HttpServerResponse.jsonUnsafe(discoveryOf(embedded.issuer, publicUrl)))
    return Layer.mergeAll(
      HttpRouter.add("GET", paths.discovery, discovery),
      HttpRouter.add("GET", paths.jwks, Effect.sync(() => HttpServerResponse.jsonUnsafe(embedded.jwks))),
      HttpRouter.add("GET", paths.authorize, guarded(by(authorize(publicUrl)))),
      HttpRouter.add("POST", paths.authorize, guarded(by(enter(publicUrl)))),
      HttpRouter.add("POST", paths.token, by(exchange(used))),
    )
  }))
