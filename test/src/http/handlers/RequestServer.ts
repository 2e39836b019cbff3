/** Requests, websites, invitations and policy reviews, served as the program serves them; and calls to them. */
import { Effect, Layer } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { EnrollmentsApi } from "../../../../schemas/api/EnrollmentsApi.ts"
import { PoliciesApi } from "../../../../schemas/api/PoliciesApi.ts"
import { RequestsApi } from "../../../../schemas/api/RequestsApi.ts"
import { WebsitesApi } from "../../../../schemas/api/WebsitesApi.ts"
import { Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { RateLimits } from "../../../../services/platform/security/RateLimits.ts"
import { enrollments } from "../../../../src/http/handlers/EnrollmentsHandlers.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { managed } from "../../../../src/http/auth/ManagementAuth.ts"
import { policies } from "../../../../src/http/handlers/PoliciesHandlers.ts"
import { requests } from "../../../../src/http/handlers/RequestsHandlers.ts"
import { Server } from "../../../../src/http/Server.ts"
import { websites } from "../../../../src/http/handlers/WebsitesHandlers.ts"
import { services } from "../../../services/decisions/RequestFixture.ts"
import { bearer } from "../../../support/TestTokens.ts"

const publicUrl = new URL("https://id.example")
const Api = HttpApi.make("bailiwick").add(RequestsApi, EnrollmentsApi, WebsitesApi, PoliciesApi)

export const served = Server.layer(
  HttpApiBuilder.layer(Api).pipe(Layer.provide([requests, enrollments, websites, policies])),
  { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href },
).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(managed({ reads: 0, writes: 0 })),
  Layer.provideMerge(Layer.merge(RateLimits.layer, Idempotency.layer)),
  Layer.provideMerge(services),
)

export interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  readonly text: string
  // deno-lint-ignore no-explicit-any
  readonly body: any
}

export const call = Effect.fnUntraced(
  function* (method: string, path: string, headers: Record<string, string>, body?: unknown) {
    const { url } = yield* Server
    return yield* Effect.promise(async (): Promise<Answer> => {
      const response = await fetch(url + path, {
        method,
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
    })
  },
)

/** A POST of a signed-in person, with a new idempotency key unless one is given. */
export const post = Effect.fnUntraced(
  function* (personId: string, path: string, body?: unknown, key: string | null = randomUUID()) {
    const headers = yield* bearer(personId)
    return yield* call("POST", path, { ...headers, ...(key === null ? {} : { "idempotency-key": key }) }, body)
  },
)
export const get = Effect.fnUntraced(function* (personId: string, path: string) {
  return yield* call("GET", path, yield* bearer(personId))
})
