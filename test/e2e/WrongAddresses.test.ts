/** Answers about an address that no webhook may have, and about a filter that nothing matches. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/WrongAddresses/Around") {
  static readonly layer = Layer.effect(Around, fixture({ ROLES: "api,actors,intake" }))
}

const told = (url: string, message: string) => ({
  type: "value_error",
  loc: ["body", "url"],
  msg: `Value error, ${message}`,
  input: url,
  ctx: { error: {} },
})

const words = "URL should begin with https:// and a host, and hold no space."
const host = "URL should have a valid host, and a port of at most 65535 if it names one."
const closed = "URL should not name an address that is private, reserved or local."
const unknown = {
  type: "literal_error",
  loc: ["body", "events", 0],
}

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })(
  "a forbidden webhook address",
  (it) => {
    it.effect("is reported beside all other faults of the body, with the value sent", () =>
      Effect.gen(function* () {
        const { api } = yield* (yield* Around).account()
        const { json: { id } } = yield* api.post("/v1/webhooks/", { url: "https://a.example/", events: ["email.sent"] })
        for (
          const [url, message] of [
            ["https://10.0.0.1/x", closed],
            ["https://example.com:22/", "URL should not name this port."],
            ["https://user:pass@example.com/", "URL should not hold a user name or a password."],
            ["http://example.com/", "URL scheme should be https."],
            ["https:///x", words],
            ["https:x", words],
            ["https://example.com:65536/", host],
            ["https://[::1/", host],
            ["not an address", words],
            ["", words],
          ] as const
        ) {
          const body = { url, events: ["email.nothing"] }
          for (const reply of [yield* api.post("/v1/webhooks/", body), yield* api.patch(`/v1/webhooks/${id}`, body)]) {
            assert.strictEqual(reply.status, 422, url)
            const [first, second, ...more] = reply.json.detail
            assert.deepStrictEqual(first, told(url, message))
            assert.deepInclude(second, unknown)
            assert.deepStrictEqual(more, [])
          }
          const alone = yield* api.patch(`/v1/webhooks/${id}`, { url })
          assert.deepStrictEqual([alone.status, alone.json.detail], [422, [told(url, message)]], url)
        }
      }))

    it.effect("a filter that nothing matches gives an empty list, U+0000 included", () =>
      Effect.gen(function* () {
        const { api } = yield* (yield* Around).account()
        const { json: { id } } = yield* api.post("/v1/webhooks/", { url: "https://a.example/", events: ["email.sent"] })
        for (const value of ["%00", "a%00b", "nothing", "%F0%9F%98%80", "%FF", ""]) {
          const page = yield* api.get(`/v1/webhooks/${id}/deliveries?status=${value}`)
          assert.deepStrictEqual([page.status, page.json], [200, { items: [], total: 0, page: 0, limit: 20 }], value)
          const list = yield* api.get(`/v1/notifications?category=${value}`)
          assert.deepStrictEqual([list.status, list.json.items], [200, []], value)
        }
        const wrong = yield* api.get(`/v1/webhooks/${id}/deliveries?status=%00&page=x`)
        assert.deepStrictEqual(wrong.json.detail.map(({ loc }: { loc: unknown }) => loc), [["query", "page"]])
      }))
  },
)
