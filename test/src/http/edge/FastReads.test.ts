import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { ApiKeysApi } from "../../../../schemas/api/ApiKeysApi.ts"
import { WebhooksApi } from "../../../../schemas/api/WebhooksApi.ts"
import { readerOf } from "../../../../src/http/edge/FastReads.ts"
import * as Routes from "../../../../src/http/edge/Routes.ts"

const deliveries = readerOf(WebhooksApi, WebhooksApi.endpoints.listDeliveries)
const apiKeys = readerOf(ApiKeysApi, ApiKeysApi.endpoints.listApiKeys)

const authorization = "Bearer mail_k_"

/** A request as a reader gets it: with the path and query that the table of routes found. */
const asked = Effect.fnUntraced(
  function* (path: string, headers: Readonly<Record<string, string>> = { authorization }) {
    const routes = yield* Routes.make
    for (const { endpoints } of [WebhooksApi, ApiKeysApi]) {
      for (const { method, path } of Object.values(endpoints)) {
        yield* routes.router.add(method, path as `/${string}`, HttpServerResponse.empty())
      }
    }
    const request = HttpServerRequest.fromWeb(new Request(`http://127.0.0.1${path}`, { headers }))
    return [request, routes.find("GET", path)!] as const
  },
)

describe("a fast read", () => {
  it.effect("reads what the contract's decoder reads, and leaves every other query to the ordinary path", () =>
    Effect.gen(function* () {
      const first = { page: 0, limit: 20 }
      const cases: ReadonlyArray<readonly [string, unknown]> = [
        ["", first],
        ["?", first],
        ["?page=1&limit=3", { page: 1, limit: 3 }],
        ["?page=%2B1&limit=1_0", { page: 1, limit: 10 }],
        ["?limit=x&limit=4", { page: 0, limit: 4 }],
        ["?status=delivered", { ...first, status: "delivered" }],
        ["?status=no%20status", { ...first, status: "no status" }],
        ["?status=", { ...first, status: "" }],
        // A filter's text that PostgreSQL cannot store finds nothing.
        ["?status=%00", { ...first, status: "\uFFFD" }],
        ["?limit=0", undefined],
        ["?limit=101", undefined],
        ["?page=-1", undefined],
        ["?page=abc", undefined],
        ["?page=%00", undefined],
        ["?known=no", undefined],
        ["?page=1&__proto__=no", undefined],
      ]
      for (const [query, expected] of cases) {
        const read = deliveries(...yield* asked(`/v1/webhooks/one/deliveries${query}`))
        assert.deepStrictEqual(read?.query, expected, query)
        assert.strictEqual(read?.params.webhook_id, expected && "one", query)
      }
    }))

  it.effect("of an endpoint without a query takes none", () =>
    Effect.gen(function* () {
      assert.strictEqual(apiKeys(...yield* asked("/v1/api-keys/"))?.authorization, authorization)
      assert.isUndefined(apiKeys(...yield* asked("/v1/api-keys/?page=1")))
    }))

  it.effect("takes a request with an Authorization header that accepts JSON", () =>
    Effect.gen(function* () {
      assert.isUndefined(apiKeys(...yield* asked("/v1/api-keys/", {})))
      assert.isUndefined(apiKeys(...yield* asked("/v1/api-keys/", { authorization, accept: "text/html" })))
      assert.isDefined(apiKeys(...yield* asked("/v1/api-keys/", { authorization, accept: "application/*" })))
    }))
})
