/** Every endpoint as curl would call it, with valid and invalid requests. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { type Call, type Reply } from "./support/ApiClient.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { cli } from "./support/ProgramInstance.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { deliveries, hook } from "./support/ProgramWebhooks.ts"
import { fixture, type Plan, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/Curl/Around") {
  static readonly layer = Layer.effect(Around, fixture({ WEBHOOKS_PER_ACCOUNT: "3" }))
}

/** A problem body with its code, repeated in the status. */
const problem = (reply: Reply, status: number, code: string) => {
  assert.deepInclude({ ...reply.json, at: reply.status }, {
    at: status,
    status,
    code,
    type: `urn:bailiwick:problem:${code}`,
    request_id: reply.headers.get("x-request-id"),
  })
  assert.match(reply.headers.get("content-type") ?? "", /^application\/problem\+json/)
  for (const member of ["title", "detail", "instance"]) assert.isString(reply.json[member], member)
}

/** The locations of the faults of a 422. */
const faults = (reply: Reply): ReadonlyArray<string> => {
  assert.strictEqual(reply.status, 422, reply.text)
  assert.match(reply.headers.get("content-type") ?? "", /^application\/json/)
  return reply.json.detail.map((fault: { loc: ReadonlyArray<string>; msg: string; type: string }) => {
    assert.isString(fault.msg)
    return `${fault.loc.join(".")} ${fault.type}`
  })
}

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("over HTTP", (it) => {
  it.effect("API keys are made, listed, used and revoked", () =>
    Effect.gen(function* () {
      const { account, api: anybody } = yield* Around
      const { api, key, session } = yield* account()
      const made = yield* api.post("/v1/api-keys/", { name: "CI", permissions: ["send", "send"] })
      assert.strictEqual(made.status, 201)
      assert.match(made.json.key, /^mail_k_[0-9A-Za-z]{43}$/)
      assert.deepInclude(made.json, { name: "CI", permissions: ["send"], key_prefix: made.json.key.slice(7, 15) })
      for (const path of ["/v1/api-keys/", "/v1/api-keys"]) {
        const list = yield* session.get(path)
        assert.strictEqual(list.status, 200)
        assert.strictEqual(list.headers.get("cache-control"), "no-store")
        assert.deepStrictEqual(list.json.map(({ name }: { name: string }) => name), ["CI", "e2e"])
        assert.notInclude(list.text, made.json.key)
        assert.notInclude(list.text, key)
      }
      const own = { headers: { authorization: `Bearer ${made.json.key}` } }
      assert.strictEqual((yield* anybody.get("/v1/api-keys/", own)).status, 200)
      for (const _ of [1, 2]) {
        const gone = yield* api.delete(`/v1/api-keys/${made.json.id}`)
        assert.deepStrictEqual([gone.status, gone.text], [204, ""])
      }
      const refused = yield* anybody.get("/v1/api-keys/", own)
      problem(refused, 401, "invalid_credentials")
      assert.match(refused.headers.get("www-authenticate") ?? "", /^Bearer/)
      problem(yield* api.delete(`/v1/api-keys/${randomUUID()}`), 404, "not_found")
      assert.deepStrictEqual(faults(yield* api.delete("/v1/api-keys/mine")), ["path.key_id uuid_parsing"])
      assert.deepStrictEqual(faults(yield* api.post("/v1/api-keys/", {})), ["body.name missing"])
      const wrong = yield* api.post("/v1/api-keys/", { name: 7, permissions: ["read"] })
      assert.deepStrictEqual(faults(wrong), ["body.name string_type", "body.permissions.0 literal_error"])
    }))

  it.effect("a plan allows its number of active keys and not one more", () =>
    Effect.gen(function* () {
      const { account } = yield* Around
      const plans: ReadonlyArray<readonly [Plan, number]> = [["free", 2], ["starter", 5], ["pro", 15], ["business", 50]]
      yield* Effect.forEach(plans, ([plan, limit]) =>
        Effect.gen(function* () {
          const { session } = yield* account({ plan })
          // A request that got no lock within two seconds is a 503, and asks to be tried again.
          const create = until(
            "an answer",
            session.post("/v1/api-keys/", { name: "one more" }),
            (r) => r.status !== 503,
          )
          // All at once, including the first key of the account.
          const all = yield* Effect.all(Array.from({ length: limit + 3 }, () => create), { concurrency: 6 })
          assert.lengthOf(all.filter(({ status }) => status === 201), limit - 1, plan)
          for (const reply of all.filter(({ status }) => status !== 201)) problem(reply, 403, "api_key_limit")
          const [some] = (yield* session.get("/v1/api-keys/")).json
          yield* session.delete(`/v1/api-keys/${some.id}`)
          assert.strictEqual((yield* create).status, 201, "an inactive key does not count")
          problem(yield* create, 403, "api_key_limit")
        }))
    }), 240_000)

  it.effect("a webhook is made from valid fields, and all invalid ones are named", () =>
    Effect.gen(function* () {
      const { account } = yield* Around
      const { api } = yield* account()
      const events = ["email.sent", "email.sent", "email.opened"]
      const made = yield* api.post("/v1/webhooks/", { url: "https://example.com/hook", events })
      assert.strictEqual(made.status, 201)
      assert.sameMembers(made.json.events, ["email.sent", "email.opened"])
      assert.match(made.json.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      const [listed] = (yield* api.get("/v1/webhooks/")).json
      assert.deepStrictEqual(Object.keys(listed).sort(), [
        "basic_auth",
        "created_at",
        "description",
        "events",
        "failing_since",
        "header_names",
        "health",
        "honor_retry_after",
        "id",
        "is_active",
        "last_success_at",
        "paused_at",
        "paused_by",
        "rate_limit",
        "url",
      ])
      const path = `/v1/webhooks/${made.json.id}`

      const create = (url: unknown, events: unknown = ["email.sent"]) => api.post("/v1/webhooks/", { url, events })
      const urls = [
        "http://example.com/",
        "https://user:secret@example.com/",
        "https://10.0.0.1/",
        "https://[fe80::1]/",
        "https://169.254.169.254/",
        "https://example.com:22/",
        `https://example.com/${"x".repeat(2048)}`,
        "nonsense",
        7,
      ]
      for (const url of urls) assert.match(faults(yield* create(url)).join(), /^body\.url /, String(url))
      assert.match(faults(yield* create("https://example.com", [])).join(), /^body\.events too_short/)
      assert.match(faults(yield* create("https://example.com", ["email.exploded"])).join(), /^body\.events\.0 /)
      assert.lengthOf(faults(yield* api.post("/v1/webhooks/", {})), 2)
      assert.lengthOf(faults(yield* api.patch(path, { url: "ftp://x", events: [], is_active: "perhaps" })), 3)
      const updated = yield* api.patch(path, { url: "https://example.org/", events: ["email.failed"] })
      assert.deepInclude(updated.json, { url: "https://example.org/", events: ["email.failed"], is_active: true })
      for (const rate_limit of [-1, 1_001, 1.5, "many"]) {
        assert.match(faults(yield* api.patch(path, { rate_limit })).join(), /^body\.rate_limit /, String(rate_limit))
      }
      const limited = yield* create("https://example.com/", ["email.sent"])
      assert.isNull(limited.json.rate_limit)
      for (const [asked, rate_limit] of [[1_000, 1_000], [null, 1_000], [0, null]]) {
        const { json } = yield* api.patch(`/v1/webhooks/${limited.json.id}`, { rate_limit: asked })
        assert.strictEqual(json.rate_limit, rate_limit)
      }
      assert.strictEqual((yield* api.delete(`/v1/webhooks/${limited.json.id}`)).status, 204)
      assert.deepStrictEqual(
        faults(yield* api.get(`${path}/deliveries?page=-1&limit=101`)).map((fault) => fault.split(" ")[0]),
        ["query.page", "query.limit"],
      )
      const empty = yield* api.get(`${path}/deliveries?status=exploded`)
      assert.deepStrictEqual(empty.json, { items: [], total: 0, page: 0, limit: 20 })
      for (const since of ["yesterday", "2026-01-01T23:59:60Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00+24:00"]) {
        assert.lengthOf(faults(yield* api.post(`${path}/replay`, { since })), 1, since)
      }
      const until = "2026-01-01T23:59:60Z"
      assert.lengthOf(faults(yield* api.post(`${path}/replay`, { since: "2026-01-01T00:00:00Z", until })), 1)
      assert.lengthOf(faults(yield* api.post(`${path}/replay`)), 1)

      for (const _ of [1, 2]) assert.strictEqual((yield* create("https://example.com/")).status, 201)
      problem(yield* create("https://example.com/"), 409, "webhook_limit")
      assert.strictEqual((yield* api.delete(path)).status, 204)
      assert.strictEqual((yield* create("https://example.com/")).status, 201)
    }))

  it.effect("another account's objects are 404, with every method", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const [owner, other] = yield* Effect.all([account(), account()])
      const target = yield* receiver(tls)
      const { id } = yield* hook(owner.api, target, "/mine", ["email.sent"])
      yield* feed.events([mailEvent(owner.id, "1", "email.sent")])
      const [one] = yield* until("a delivery", deliveries(owner.api, id, "delivered"), (found) => found.length === 1)
      assert.deepStrictEqual(
        (yield* owner.api.get(`/v1/webhooks/${id}/deliveries/${one.id}`)).json.payload.email_id,
        "em_1",
      )
      const since = "2026-01-01T00:00:00.000Z"
      for (const [hookId, deliveryId] of [[id, one.id], [randomUUID(), randomUUID()], ["nonsense", "nonsense"]]) {
        const api = other.api
        const replies = yield* Effect.all([
          api.patch(`/v1/webhooks/${hookId}`, { is_active: false }),
          api.delete(`/v1/webhooks/${hookId}`),
          api.post(`/v1/webhooks/${hookId}/test`),
          api.post(`/v1/webhooks/${hookId}/rotate-secret`),
          api.post(`/v1/webhooks/${hookId}/replay`, { since }),
          api.get(`/v1/webhooks/${hookId}/deliveries`),
          api.get(`/v1/webhooks/${hookId}/deliveries/${deliveryId}`),
          api.get(`/v1/webhook-deliveries/${deliveryId}`),
          api.post(`/v1/webhook-deliveries/${deliveryId}/replay`),
        ])
        for (const reply of replies) problem(reply, 404, "not_found")
      }
      // A delivery of another webhook of the same account is 404 too.
      const second = yield* hook(owner.api, target, "/second", ["email.sent"])
      problem(yield* owner.api.get(`/v1/webhooks/${second.id}/deliveries/${one.id}`), 404, "not_found")
      assert.strictEqual((yield* owner.api.get(`/v1/webhooks/${id}/deliveries`)).status, 200)
    }))

  it.effect("tests are limited to ten a minute: the eleventh is 429 with Retry-After, and ten samples arrive", () =>
    Effect.gen(function* () {
      const { account, tls } = yield* Around
      const { api } = yield* account()
      const target = yield* receiver(tls)
      const { id, path } = yield* hook(api, target, "/tested", ["email.bounced"])
      for (let n = 0; n < 10; n++) {
        const reply = yield* api.post(`/v1/webhooks/${id}/test`)
        assert.deepStrictEqual([reply.status, reply.json], [200, { queued: true, url: target.url("/tested") }])
      }
      const limited = yield* api.post(`/v1/webhooks/${id}/test`)
      problem(limited, 429, "rate_limited")
      assert.isAtLeast(Number(limited.headers.get("retry-after")), 1)
      yield* until("the samples", Effect.sync(() => target.at(path).length), (n) => n === 10)
      for (const { body, fault } of target.at(path)) {
        assert.isNull(fault)
        assert.deepInclude(JSON.parse(body), { event: "email.delivered" })
      }
    }))

  it.effect(
    "refusals of path, method, body and credential are problems, whose request id leads to the audit",
    () =>
      Effect.gen(function* () {
        const { account, api: anybody, cookie, env, home } = yield* Around
        const { api, id, key } = yield* account()
        const named = { headers: { "x-request-id": "e2e.Kept_1-x" } }
        assert.strictEqual((yield* api.get("/v1/webhooks/", named)).headers.get("x-request-id"), "e2e.Kept_1-x")
        const odd = yield* api.get("/v1/webhooks/", { headers: { "x-request-id": "not well formed" } })
        assert.match(odd.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/)

        problem(yield* api.get("/v1/nothing"), 404, "not_found")
        const put = yield* api.call("PUT", "/v1/webhooks/", { body: {} })
        problem(put, 405, "method_not_allowed")
        assert.sameMembers((put.headers.get("allow") ?? "").split(/, ?/).filter((m) => !/HEAD|OPTIONS/.test(m)), [
          "GET",
          "POST",
        ])
        const post = (options: Call) => api.call("POST", "/v1/webhooks/", options)
        assert.deepStrictEqual(faults(yield* post({ raw: "{" })).map((fault) => fault.split(" ")[1]), ["json_invalid"])
        problem(yield* post({ raw: "a=1", headers: { "content-type": "text/plain" } }), 415, "unsupported_media_type")
        problem(yield* post({ raw: JSON.stringify({ url: "x".repeat(300_000) }) }), 413, "body_too_large")
        for (const authorization of ["", "Bearer", "Bearer mail_k_wrong", `Basic ${key}`, `Bearer ${key}x`]) {
          problem(yield* anybody.get("/v1/webhooks/", { headers: { authorization } }), 401, "invalid_credentials")
        }
        problem(yield* anybody.get(`/v1/webhooks/?api_key=${key}`), 401, "invalid_credentials")
        problem(
          yield* anybody.get("/v1/webhooks/", { headers: yield* cookie(randomUUID()) }),
          401,
          "invalid_credentials",
        )
        const foreign = yield* anybody.post("/v1/webhooks/", {}, {
          headers: { ...(yield* cookie(id)), origin: "https://evil.example" },
        })
        problem(foreign, 403, "csrf_rejected")

        for (const failed of [put, foreign]) {
          const requestId = failed.json.request_id
          const { output } = yield* until(
            "the audit",
            cli({ ...env, BAILIWICK_HOME: home }, "audit", "--request-id", requestId),
            ({ output }) => output.includes(requestId),
          )
          const record = JSON.parse(output.split("\n")[0]!)
          assert.deepInclude(record, { status: failed.status, code: failed.json.code })
          assert.notInclude(output, key)
        }
      }),
    240_000,
  )

  it.effect("the contract lists the paths of keys and webhooks, and its page loads nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { api } = yield* Around
      const { json } = yield* api.get("/v1/openapi.json")
      assert.deepStrictEqual([json.openapi, json.info.version], ["3.1.0", "0.2.0"])
      const paths = Object.keys(json.paths).map((path) => path.replace(/\/$/, ""))
      assert.includeMembers(paths, [
        "/health",
        "/ready",
        "/v1/api-keys",
        "/v1/api-keys/{key_id}",
        "/v1/webhooks",
        "/v1/webhooks/{webhook_id}",
        "/v1/webhooks/{webhook_id}/test",
        "/v1/webhooks/{webhook_id}/rotate-secret",
        "/v1/webhooks/{webhook_id}/replay",
        "/v1/webhooks/{webhook_id}/deliveries",
        "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
        "/v1/webhook-deliveries/{delivery_id}",
        "/v1/webhook-deliveries/{delivery_id}/replay",
        "/v1/webhook-deliveries/{delivery_id}/retry",
        "/v1/webhook-deliveries/{delivery_id}/cancel",
      ])
      const page = yield* api.get("/v1/docs")
      assert.strictEqual(page.status, 200)
      assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/)
      const loaded = [...page.text.matchAll(/(?:src|href|action)="([^"]+)"|url\(([^)]+)\)|@import\s+(\S+)/g)]
      for (const [, address] of loaded) assert.match(address ?? "", /^(#|\/(?!\/)|mailto:)/)
    }))
})
