/** Tokens of a real OpenID provider, obtained as a portal's server and a service do, verified by its key set. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { AccessTokens, configuredTokenIssuers } from "../../../services/people/AccessTokens.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import { SessionActivity } from "../../../services/people/SessionActivity.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { form, signInProvider, throughPages } from "../../support/OidcSignIn.ts"
import { identity, person } from "../../support/TestIdentity.ts"

const redirectUri = "https://portal.example/callback"
const secret = "a-secret-that-is-long-enough-for-everyone"
const client = { client_secret: secret, token_endpoint_auth_method: "client_secret_post" }

/** A provider with a portal and a service for its clients. */
const provider = Effect.map(
  signInProvider({
    clients: [
      { ...client, client_id: "portal", grant_types: ["authorization_code"], redirect_uris: [redirectUri] },
      {
        ...client,
        client_id: "hr-sync",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: { clientCredentials: { enabled: true } },
  }),
  ({ issuer }) => issuer,
)

type Tokens = Record<"access_token" | "id_token", string>

const tokensFor = async (issuer: string, fields: Record<string, string>): Promise<Tokens> => {
  const response = await fetch(`${issuer}/token`, form({ client_secret: secret, ...fields }))
  assert.strictEqual(response.status, 200, await response.clone().text())
  return await response.json() as Tokens
}

/** Signs in through the provider's own pages, as a browser would; returns the last redirect. */
const signIn = async (issuer: string, login: string, challenge: string): Promise<URL> => {
  const query = new URLSearchParams({
    client_id: "portal",
    response_type: "code",
    redirect_uri: redirectUri,
    scope: "openid",
    code_challenge: challenge,
    code_challenge_method: "S256",
  })
  const { location } = await throughPages(`${issuer}/auth?${query}`, login, redirectUri)
  return location
}

const outbound = Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 5_000, ownPorts: [] })
const nowhere = { userAgent: null, address: null }

layer(identity, { excludeTestServices: true })("a real provider", (it) => {
  it.effect("a person's and a service's access tokens are accepted, an ID token is refused", () =>
    Effect.gen(function* () {
      const issuer = yield* provider
      const ada = yield* person({ issuer, subject: "ada" })
      const issuers = yield* configuredTokenIssuers([{ issuer, jwks_uri: `${issuer}/jwks`, max_aal: "aal2" }])
      const recognise = (token: string) =>
        CallerAuthentication.use(({ recognise }) => recognise(`Bearer ${token}`, nowhere)).pipe(
          Effect.provide(CallerAuthentication.layer.pipe(
            Layer.provide(Layer.merge(AccessTokens.layer(issuers), SessionActivity.layer)),
          )),
        )
      const verifier = randomBytes(32).toString("base64url")
      const { access_token: adas, id_token: idToken } = yield* Effect.promise(async () => {
        const challenge = createHash("sha256").update(verifier).digest("base64url")
        const code = (await signIn(issuer, "ada", challenge)).searchParams.get("code")!
        return await tokensFor(issuer, {
          client_id: "portal",
          grant_type: "authorization_code",
          code,
          redirect_uri: redirectUri,
          code_verifier: verifier,
        })
      })
      const caller = yield* recognise(adas)
      assert.deepInclude(caller, {
        principal: `person:${ada}`,
        via: "person",
        personId: ada,
        issuer,
        subject: "ada",
        clientId: "portal",
        acr: "urn:service:aal1",
        aal: "aal1",
      })
      assert.isString(caller.sid)
      assert.closeTo(caller.authTime!, Date.now() / 1_000, 60)
      assert.strictEqual((yield* Effect.flip(recognise(idToken))).code, "invalid_token")

      const { access_token: services } = yield* Effect.promise(() =>
        tokensFor(issuer, { client_id: "hr-sync", grant_type: "client_credentials" })
      )
      assert.deepInclude(yield* recognise(services), {
        principal: `service:${issuer} hr-sync`,
        via: "service",
        personId: null,
        authTime: null,
      })
    }).pipe(Effect.scoped, Effect.provide(outbound)))
})
