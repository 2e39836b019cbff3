/** `/v1/me` served as the program serves it, beside an endpoint of the mail service, and a person's requests to it. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomBytes } from "node:crypto"
import { ApiKeysApi } from "../../../../schemas/api/ApiKeysApi.ts"
import { AssertionsApi } from "../../../../schemas/api/AssertionsApi.ts"
import { MeApi } from "../../../../schemas/api/MeApi.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { Cookies } from "../../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { Assertions } from "../../../../services/people/Assertions.ts"
import { Authenticators } from "../../../../services/people/Authenticators.ts"
import { relyingPartyAt } from "../../../../services/people/Authenticators/Webauthn.ts"
import { CredentialActions } from "../../../../services/people/CredentialActions.ts"
import { NoticeSettings } from "../../../../services/decisions/NoticeSettings.ts"
import { People } from "../../../../services/people/People.ts"
import { Sessions } from "../../../../services/people/Sessions.ts"
import { SecurityEventFanout } from "../../../../services/people/SecurityEventFanout.ts"
import { Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { Vault } from "../../../../services/platform/security/Vault.ts"
import { apiKeys } from "../../../../src/http/handlers/ApiKeysHandlers.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import type { Rates } from "../../../../src/http/auth/Limits.ts"
import { assertions, verifying } from "../../../../src/http/handlers/AssertionsHandlers.ts"
import { fastMe, me } from "../../../../src/http/handlers/MeHandlers.ts"
import { Server } from "../../../../src/http/Server.ts"
import { identity, issuer } from "../../../support/TestIdentity.ts"
import { bearer, managedBy, type TokenOptions } from "../../../support/TestTokens.ts"

export const portal = new URL("https://portal.example")
const publicUrl = new URL("https://id.example")

/** The client by which issuers ask for assertions, and two other issuers that have one. */
export const signIn = "sign-in"
export const other = "https://other.example"
export const busy = "https://busy.example"

const Api = HttpApi.make("bailiwick").add(MeApi, ApiKeysApi, AssertionsApi)
const ring = JSON.stringify({ active: "k1", keys: { k1: randomBytes(32).toString("base64") } })

const personal = (at: URL) =>
  CredentialActions.layer(relyingPartyAt(at)).pipe(
    Layer.provideMerge(Layer.mergeAll(Authenticators.layer, Sessions.layer, SecurityEventFanout.layer())),
    Layer.merge(People.layer),
    Layer.merge(Assertions.layer(relyingPartyAt(at))),
    Layer.merge(NoticeSettings.layer),
    Layer.merge(Idempotency.layer),
  )

const mailKeys = ApiKeys.layer.pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provideMerge(KeyUses.layer),
  Layer.provide(Cookies.layer([])),
)

/** The server, with everything below it; `EmbeddedIssuer` is the only issuer. Passkeys are made for `at`. */
export const fixture = (rates?: Rates, at = portal, assertionRate = 0) =>
  Server.layer(
    Layer.merge(HttpApiBuilder.layer(Api), fastMe(rates ?? { reads: 0, writes: 0 })).pipe(
      Layer.provide([me, apiKeys, assertions]),
      Layer.provide(
        verifying({ clients: [issuer, other, busy].map((one) => `${one} ${signIn}`), rate: assertionRate }),
      ),
      Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
    ),
    { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href },
  ).pipe(
    Layer.provide(RejectionAudit.layer),
    Layer.provideMerge(personal(at)),
    Layer.provideMerge(managedBy(rates)),
    Layer.provideMerge(mailKeys),
    Layer.provideMerge(Vault.layer({ keys: Redacted.make(ring), file: "/nowhere" })),
    Layer.provideMerge(identity),
  )

export interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  // deno-lint-ignore no-explicit-any
  readonly body: any
  readonly text: string
}

export type Headers = Record<string, string>

export const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: unknown) {
  const { url } = yield* Server
  return yield* Effect.promise(async (): Promise<Answer> => {
    const sent = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
    const response = await fetch(url + path, {
      method,
      headers: { ...(sent === null ? {} : { "content-type": "application/json" }), ...headers },
      body: sent,
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text), text }
  })
})

/** The answer's body, where it has this status. */
export const bodyOf = (answer: Answer, status = 200) => {
  assert.strictEqual(answer.status, status, answer.text)
  return answer.body
}

/** A person who signed in just now: `ask("GET", "/v1/me")`. */
export const asking = Effect.fnUntraced(function* (personId: string, options: TokenOptions = {}) {
  const headers = yield* bearer(personId, options)
  return (method: string, path: string, body?: unknown, more: Headers = {}) =>
    call(method, path, { ...headers, ...more }, body)
})
