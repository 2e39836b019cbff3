/** Custom headers and basic authentication of a webhook: what its receiver gets, and where no one else sees them. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { mailEvent } from "./support/EventFeed.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { deliveries, totals } from "./support/ProgramWebhooks.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"

const event = "email.delivered"

it.live(
  "custom headers and basic authentication arrive with every attempt, test and replay, and are shown by nothing",
  () =>
    Effect.gen(function* () {
      const { account, feed, instance, tls } = yield* fixture({
        WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 second").join(","),
        LOG_LEVEL: "debug",
      })
      const { api, id } = yield* account()
      const target = yield* receiver(
        tls,
        ({ attempt }) => attempt === 1 ? 500 : 200,
        // A receiver that sends back what it got.
        (sent) => ({
          "x-tenant": String(sent["x-tenant"]),
          "x-got": JSON.stringify({ tenant: sent["x-tenant"] }),
          "x-basic": String(sent.authorization).slice("Basic ".length),
          "webhook-signature": String(sent["webhook-signature"]),
          "x-answer": "kept",
        }),
      )
      const [value, password] = [`tenant-${randomUUID()}`, `pass wörd-${randomUUID()}`]
      const own = {
        headers: [{ name: "X-Tenant", value }, { name: "__proto__", value: "p" }],
        basic_auth: { username: "hook", password },
      }
      const made = yield* api.post("/v1/webhooks/", { url: target.url("/own"), events: [event], ...own })
      assert.strictEqual(made.status, 201, made.text)
      target.trust("/own", made.json.secret)
      assert.deepInclude(made.json, { header_names: ["X-Tenant", "__proto__"], basic_auth: true })
      const hook = `/v1/webhooks/${made.json.id}`

      yield* feed.events([mailEvent(id, "1")])
      yield* until("the retry", totals(api, made.json.id), ({ delivered }) => delivered === 1)
      yield* api.post(`${hook}/test`)
      yield* until("the test", totals(api, made.json.id), ({ delivered }) => delivered === 2)
      const [first] = yield* deliveries(api, made.json.id)
      assert.strictEqual((yield* api.post(`/v1/webhook-deliveries/${first.id}/replay`)).status, 202)
      const heard = yield* until("all", Effect.sync(() => target.at("/own")), (found) => found.length === 6)
      const basic = `Basic ${Buffer.from(`hook:${password}`).toString("base64")}`
      for (const { fault, headers } of heard) {
        assert.isNull(fault)
        assert.strictEqual(headers["x-tenant"], value)
        assert.strictEqual(headers.authorization, basic)
      }

      // Another origin gets none of them, unless they are given anew.
      const moved = yield* api.patch(hook, { url: "https://elsewhere.example/" })
      assert.strictEqual(moved.status, 422)
      assert.deepStrictEqual(moved.json.detail.map(({ loc }: { loc: unknown }) => loc), [["body", "headers"], [
        "body",
        "basic_auth",
      ]])
      const within = yield* api.patch(hook, { url: target.url("/else"), description: "moved" })
      assert.deepInclude(within.json, { header_names: ["X-Tenant", "__proto__"], basic_auth: true })

      yield* until("the replay", totals(api, made.json.id), ({ delivered }) => delivered === 2)
      const read = yield* Effect.all([
        ...[hook, "/v1/webhooks/", `/v1/webhook-deliveries/${first.id}`, `${hook}/deliveries/${first.id}`].map((path) =>
          api.get(path)
        ),
        api.post(`${hook}/rotate-secret`),
      ])
      const shown = [made.text, moved.text, within.text, ...read.map(({ text }) => text), instance.output()].join("\n")
      for (const secret of [value, password, basic, basic.slice(6), Buffer.from(password).toString("hex")]) {
        assert.notInclude(shown, secret)
      }

      const [tried] = read[2]!.json.attempts
      assert.deepInclude(tried, { response_status: 500, attempt: 1 })
      assert.strictEqual(tried.request_headers["X-Webhook-Attempt"], "1")
      assert.notProperty(tried.request_headers, "Authorization")
      assert.property(tried.response_headers, "date")
      const masked = { "x-tenant": "…", "x-got": "…", "x-basic": "…", "webhook-signature": "…" }
      assert.deepInclude(tried.response_headers, { ...masked, "x-answer": "kept" })

      const gone = yield* api.patch(hook, {
        url: target.url("/own"),
        headers: [],
        basic_auth: { username: "", password: "" },
      })
      assert.deepInclude(gone.json, { header_names: [], basic_auth: false })
    }).pipe(Effect.scoped),
  120_000,
)

it.live(
  "a refused header is answered with every fault at once, and with none of the values that were sent",
  () =>
    Effect.gen(function* () {
      const { account } = yield* fixture()
      const { api } = yield* account()
      const secret = `secret-${randomUUID()}`
      const refused = [
        { name: "Host", value: secret },
        { name: "X-Webhook-Signature", value: secret },
        { name: "X-A\r\nX-B", value: secret },
        { name: "X-C", value: `${secret}\r\nX-D: 1` },
        { name: "X-E", value: [secret] },
        { value: secret },
      ]
      const body = {
        url: "https://hook.example/",
        events: [event],
        headers: refused,
        basic_auth: { username: `a:${secret}`, password: `${secret}\n` },
      }
      const made = yield* api.post("/v1/webhooks/", body)
      assert.strictEqual(made.status, 422)
      assert.deepStrictEqual(
        made.json.detail.map((
          { loc, type }: { loc: ReadonlyArray<unknown>; type: string },
        ) => [loc.slice(1).join("."), type]),
        [
          ["headers.0.name", "value_error"],
          ["headers.1.name", "value_error"],
          ["headers.2.name", "string_pattern_mismatch"],
          ["headers.3.value", "string_pattern_mismatch"],
          ["headers.4.value", "string_type"],
          ["headers.5.name", "missing"],
          ["basic_auth.username", "string_pattern_mismatch"],
          ["basic_auth.password", "string_pattern_mismatch"],
        ],
      )
      const header = { name: "authorization", value: `Bearer ${secret}` }
      const basic_auth = { username: "hook", password: secret }
      const other = yield* Effect.all([
        api.post("/v1/webhooks/", { ...body, headers: [header], basic_auth }),
        api.post("/v1/webhooks/", { ...body, headers: [header, header], basic_auth: secret }),
        api.post("/v1/webhooks/", { ...body, headers: secret, basic_auth }),
        api.post("/v1/webhooks/", { headers: [header], basic_auth }),
        api.post("/v1/webhooks/", [{ headers: [header], basic_auth }]),
      ])
      for (const reply of [made, ...other]) {
        assert.strictEqual(reply.status, 422, reply.text)
        assert.notInclude(reply.text, secret)
      }
      assert.deepStrictEqual((yield* api.get("/v1/webhooks/")).json, [])
    }).pipe(Effect.scoped),
  120_000,
)
