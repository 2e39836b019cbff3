/** The limit of refused credentials per address, at the mail API's keys, behind a trusted proxy. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { ApiKeysApi } from "../../../../schemas/api/ApiKeysApi.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { apiKeys } from "../../../../src/http/handlers/ApiKeysHandlers.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { Clients } from "../../../../src/http/edge/Clients.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { networkOf, RefusedCredentials, Windows } from "../../../../src/http/edge/RefusedCredentials.ts"
import { Server } from "../../../../src/http/Server.ts"
import { account, ground, sessions, signedIn } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")
const limit = 5

const served = (nodeHttp: boolean) =>
  Server.layer(
    HttpApiBuilder.layer(HttpApi.make("bailiwick").add(ApiKeysApi)).pipe(
      Layer.provide(apiKeys),
      Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
    ),
    { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href, nodeHttp },
  ).pipe(
    Layer.provide(RefusedCredentials.layer(limit)),
    Layer.provide(Clients.layer(["127.0.0.0/8", "10.0.0.0/8"])),
    Layer.provide(RejectionAudit.layer),
    Layer.provideMerge(ApiKeys.layer),
    Layer.provideMerge(Principals.layer),
    Layer.provide(KeyUses.layer),
    Layer.provideMerge(sessions),
    Layer.provideMerge(ground),
  )

type Headers = Readonly<Record<string, string>>

const call = Effect.fnUntraced(function* (from: string, headers: Headers, body?: string) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(`${url}/v1/api-keys/`, {
      headers: {
        "x-forwarded-for": from,
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { method: "POST", body }),
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  })
})

const madeUp = () => ({ authorization: `Bearer mail_k_${randomUUID().replaceAll("-", "").padEnd(43, "x")}` })

/** As many refused credentials as are allowed. */
const used = (from: string) =>
  Effect.forEach(
    Array.from({ length: limit }),
    () => Effect.map(call(from, madeUp()), ({ status }) => assert.strictEqual(status, 401)),
  )

const keyOf = Effect.fnUntraced(function* (from: string) {
  const session = yield* signedIn(yield* account({ plan: "free" }))
  const { body } = yield* call(from, session, JSON.stringify({ name: "CI" }))
  return { session, id: String(body.id), key: { authorization: `Bearer ${body.key}` } }
})

for (const nodeHttp of [false, true]) {
  layer(served(nodeHttp), { excludeTestServices: true })(
    `refused credentials, ${nodeHttp ? "node:http" : "own"}`,
    (it) => {
      it.effect("beyond the limit further credentials from the address are 429 until the minute is over", () =>
        Effect.gen(function* () {
          const from = "203.0.113.1"
          yield* used(from)
          const { body, headers, status } = yield* call(from, madeUp())
          assert.deepStrictEqual([status, body.code, body.limit, body.window_seconds], [429, "rate_limited", limit, 60])
          assert.match(
            body.detail,
            /^This address sent 5 credentials that were refused within a minute: try again in \d+ s$/,
          )
          assert.strictEqual(headers.get("retry-after"), String(body.retry_after))
          assert.isAtLeast(body.retry_after, 1)
          assert.isAtMost(body.retry_after, 60)
          assert.strictEqual(headers.get("ratelimit-policy"), `"default";q=5;w=60`)
          assert.strictEqual((yield* call(from, { cookie: "mail_session=made.up.session" })).status, 429)
          // A request without a credential guesses nothing.
          assert.strictEqual((yield* call(from, {})).status, 401)
          assert.strictEqual((yield* call("203.0.113.2", madeUp())).status, 401)
        }))

      it.effect("credentials accepted before pass, new ones wait, and revoked ones are forgotten", () =>
        Effect.gen(function* () {
          const from = "203.0.113.3"
          const { id, key, session } = yield* keyOf(from)
          const fresh = yield* keyOf("203.0.113.4")
          assert.strictEqual((yield* call(from, key)).status, 200)
          yield* used(from)
          assert.strictEqual((yield* call(from, key)).status, 200)
          assert.strictEqual((yield* call(from, session)).status, 200)
          assert.strictEqual((yield* call(from, fresh.key)).status, 429)
          assert.strictEqual((yield* call("203.0.113.4", fresh.key)).status, 200)
          const { url } = yield* Server
          const gone = yield* Effect.promise(() =>
            fetch(`${url}/v1/api-keys/${id}`, {
              method: "DELETE",
              headers: { ...session, origin: publicUrl.origin },
            })
          )
          assert.strictEqual(gone.status, 204)
          assert.strictEqual((yield* call(from, key)).status, 401)
          assert.strictEqual((yield* call(from, key)).status, 429)
        }))

      it.effect("the address is the right-most untrusted entry; entries to its left count for nothing", () =>
        Effect.gen(function* () {
          yield* used("203.0.113.5, 10.1.2.3")
          for (const from of ["203.0.113.5", "198.51.100.7, 203.0.113.5:4711", "127.0.0.9, 203.0.113.5, 10.9.9.9"]) {
            assert.strictEqual((yield* call(from, madeUp())).status, 429, from)
          }
          assert.strictEqual((yield* call("203.0.113.5, 203.0.113.6", madeUp())).status, 401)
          assert.strictEqual((yield* call("", { forwarded: "for=203.0.113.5", ...madeUp() })).status, 401)
          yield* used("2001:db8:1:2::1")
          assert.strictEqual((yield* call("[2001:db8:1:2:ffff::2]:80", madeUp())).status, 429)
          assert.strictEqual((yield* call("2001:db8:1:3::1", madeUp())).status, 401)
        }))
    },
  )
}

layer(served(false), { excludeTestServices: true })("behind a proxy that sends Forwarded", (it) => {
  it.effect("the proxy's own address counts where X-Forwarded-For is absent", () =>
    Effect.gen(function* () {
      const { url } = yield* Server
      const ask = (forwarded: string) =>
        Effect.promise(async () => {
          const response = await fetch(`${url}/v1/api-keys/`, { headers: { forwarded, ...madeUp() } })
          await response.body?.cancel()
          return response.status
        })
      for (let n = 0; n < limit; n++) assert.strictEqual(yield* ask(`for=192.0.2.1, for=203.0.113.8;proto=https`), 401)
      assert.strictEqual(yield* ask(`For="203.0.113.8:4711";proto=https`), 429)
      assert.strictEqual(yield* ask(`for=203.0.113.9`), 401)
    }))
})

describe("windows of refused credentials", () => {
  test("end a minute after their first refusal, and hold 10,000 networks", () => {
    const windows = new Windows(2)
    assert.deepStrictEqual([windows.add("a", 0), windows.add("a", 59_000)], [false, true])
    assert.deepStrictEqual([windows.left("a", 59_001), windows.left("a", 60_000), windows.left("b", 0)], [1, 0, 0])
    assert.deepStrictEqual([windows.busy(59_999), windows.busy(60_000)], [true, false])
    assert.isFalse(windows.add("a", 60_000))
    for (let n = 0; n < 20_000; n++) windows.add(`n${n}`, 60_001)
    assert.strictEqual(windows.size, 10_000)
    windows.add("later", 120_001)
    assert.strictEqual(windows.size, 1)
  })

  test("count by IPv4 address and by the /64 of IPv6", () => {
    assert.strictEqual(networkOf("192.0.2.7"), "192.0.2.7")
    assert.strictEqual(networkOf("::ffff:192.0.2.7"), "192.0.2.7")
    assert.strictEqual(networkOf("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::/64")
    assert.isNull(networkOf("unknown"))
  })
})
