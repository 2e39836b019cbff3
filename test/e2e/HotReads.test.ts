/**
 * Reads on the fast path answer the same bytes as on the ordinary path. A query that the contract does not know is
 * ignored by it and unknown to the fast path, so a request with one takes the ordinary path.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { connect } from "node:net"
import { ApiKeyView } from "../../schemas/mail/ApiKey.ts"
import { DeliveryPage, SentDelivery } from "../../schemas/mail/Delivery.ts"
import { NotificationList } from "../../schemas/mail/Notification.ts"
import { DomainTransfer } from "../../schemas/mail/Transfer.ts"
import { WebhookView } from "../../schemas/mail/Webhook.ts"
import { target } from "../long/support/Target.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { until } from "./support/Until.ts"
import { totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

/** Values that differ between requests: the record of a refusal, and a key's last use. */
const masked = (text: string) =>
  text.replace(/"audit_id":"[^"]*"/, `"audit_id":…`).replace(/"last_used_at" ?: ?(null|"[^"]*")/g, `"last_used_at":…`)

/** The form that the contract's encoder gives an answer: its members in its order, in compact JSON. */
const encoded = <S extends Schema.Codec<unknown, unknown>>(schema: S, text: string) =>
  JSON.stringify(Schema.encodeSync(schema)(Schema.decodeSync(schema)(JSON.parse(text))))

/**
 * The answer to a GET with one Authorization header for each credential: written by hand, since no client sends two.
 */
const statusOf = (url: URL, credentials: ReadonlyArray<string>) =>
  Effect.promise(() =>
    new Promise<number>((resolve, reject) => {
      const lines = credentials.map((credential) => `Authorization: ${credential}\r\n`).join("")
      let answer = ""
      const socket = connect(Number(url.port), url.hostname, () =>
        socket.write(
          `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n${lines}\r\n`,
        ))
      socket.on("data", (bytes) => answer += bytes).on("error", reject)
        .on("close", () => resolve(Number(answer.split(" ", 2)[1])))
    })
  )

describe("hot reads", () => {
  it.live("answer as the ordinary path does", () =>
    Effect.gen(function* () {
      const around = yield* fixture()
      const account = yield* around.account()
      const other = yield* around.account()
      const receiver = yield* target(({ path }) => path === "/good" ? 204 : 503)
      const made = yield* account.api.post("/v1/webhooks/", { url: receiver.url("/good"), events: ["email.sent"] })
      const foreign = yield* other.api.post("/v1/webhooks/", { url: receiver.url("/x"), events: ["email.sent"] })
      yield* around.feed.events(Array.from({ length: 7 }, (_, n) => mailEvent(account.id, `e${n}`, "email.sent")))
      yield* until("the deliveries", totals(account.api, made.json.id), ({ delivered }) => delivered === 7)

      const page = `/v1/webhooks/${made.json.id}/deliveries`
      const seen = new Map<string, number>()
      const same = Effect.fnUntraced(function* (path: string, headers: Readonly<Record<string, string>>) {
        const longer = `${path}${path.includes("?") ? "&" : "?"}known=no`
        const [short, long] = yield* Effect.forEach([path, longer], (asked) =>
          Effect.map(
            around.api.get(asked, { headers: { "x-request-id": "the-same", ...headers } }),
            (reply) => ({
              status: reply.status,
              headers: [...reply.headers].filter(([name]) => name !== "date" && name !== "content-length"),
              text: masked(reply.text),
            }),
          ))
        assert.deepStrictEqual(short, long, path)
        seen.set(path, short!.status)
      })
      const key = { authorization: `Bearer ${account.key}` }
      const paths = [
        page,
        `${page}?page=1&limit=3`,
        `${page}?limit=5&status=delivered`,
        `${page}?status=retrying`,
        `${page}?page=9`,
        `${page}?limit=0`,
        `${page}?page=-1&limit=abc`,
        `${page}?limit=3&limit=4`,
        `${page}?page=%2B1&limit=1_0`,
        `${page}?limit=x&limit=4`,
        `${page}?status=`,
        `${page}?status=no%20status`,
        `${page}?status=%00`,
        `${page}?page=%00`,
        `${page}?limit=101&page=&status=x`,
        `/v1/webhooks/${foreign.json.id}/deliveries`,
        `/v1/webhooks/${randomUUID()}/deliveries`,
        "/v1/webhooks/no-id/deliveries",
        "/v1/api-keys/",
        "/v1/api-keys",
      ]
      for (const path of paths) yield* same(path, key)
      const statuses = paths.map((path) => seen.get(path))
      const queries = [200, 200, 200, 200, 200, 422, 422, 200, 200, 200, 200, 200, 200, 422, 422]
      assert.deepStrictEqual(statuses, [...queries, 404, 404, 404, 200, 200])
      const refused: ReadonlyArray<readonly [Readonly<Record<string, string>>, number]> = [
        [{}, 401],
        [{ authorization: "Bearer mail_k_" }, 401],
        [{ authorization: `Bearer mail_k_${"0".repeat(43)}` }, 401],
        [{ ...key, accept: "text/html" }, 406],
        [{ authorization: `bearer  ${account.key}`, accept: "text/html, application/*;q=0.5" }, 200],
      ]
      for (const path of [page, "/v1/api-keys/"]) {
        for (const [headers, status] of refused) {
          yield* same(path, headers)
          assert.strictEqual(seen.get(path), status, JSON.stringify(headers))
        }
      }
      // Of two Authorization headers neither is chosen.
      const changed = `Bearer ${account.key.slice(0, -1)}`
      for (const credentials of [[key.authorization, key.authorization], [key.authorization, changed]]) {
        for (const path of [page, `${page}?known=no`, "/v1/api-keys/"]) {
          assert.strictEqual(yield* statusOf(new URL(path, around.instance.origin()), credentials), 401)
        }
      }
      assert.strictEqual(yield* statusOf(new URL(page, around.instance.origin()), [key.authorization]), 200)
      // A revoked key is refused at once on both paths.
      const { json } = yield* account.session.get("/v1/api-keys/")
      yield* account.session.delete(`/v1/api-keys/${json[0].id}`)
      for (const path of [page, "/v1/api-keys/"]) {
        yield* same(path, key)
        assert.strictEqual(seen.get(path), 401)
      }
    }).pipe(Effect.scoped))

  it.live("and lists are encoded as by the contract's encoder", () =>
    Effect.gen(function* () {
      const around = yield* fixture()
      const account = yield* around.account()
      const receiver = yield* target(() => 204)
      const made = yield* account.api.post("/v1/webhooks/", { url: receiver.url("/a"), events: ["email.sent"] })
      yield* account.session.post("/v1/api-keys/", { name: `quoted " \\ tab ü \u2028 key` })
      const odd = `a "b" \\ \u0007 ü \u2028 \u007f`
      const event = mailEvent(account.id, "odd", "email.sent")
      yield* around.feed.events([{ ...event, metadata: { ...event.metadata, subject: odd } }])
      yield* until("the delivery", totals(account.api, made.json.id), ({ delivered }) => delivered === 1)
      yield* account.api.patch(`/v1/webhooks/${made.json.id}`, { is_active: false })
      const page = `/v1/webhooks/${made.json.id}/deliveries`
      const [delivery] = (yield* account.api.get(page)).json.items
      const reads: ReadonlyArray<readonly [string, Schema.Codec<unknown, unknown>]> = [
        [page, DeliveryPage],
        [`${page}?status=retrying`, DeliveryPage],
        [`/v1/webhook-deliveries/${delivery.id}`, SentDelivery],
        ["/v1/api-keys/", Schema.Array(ApiKeyView)],
        ["/v1/webhooks/?include_paused=true", Schema.Array(WebhookView)],
        ["/v1/webhooks/", Schema.Array(WebhookView)],
        ["/v1/notifications", NotificationList],
        ["/v1/domain-transfers/incoming", Schema.Array(DomainTransfer)],
        ["/v1/domain-transfers/outgoing", Schema.Array(DomainTransfer)],
      ]
      for (const [path, schema] of reads) {
        const { status, text } = yield* account.session.get(path)
        assert.deepStrictEqual([status, text], [200, encoded(schema, text)], path)
      }
    }).pipe(Effect.scoped), 60_000)

  it.live("are limited per account like other requests, by the configured limits", () =>
    Effect.gen(function* () {
      const { account } = yield* fixture({ MAIL_READ_RATE: "10", MAIL_WRITE_RATE: "5" })
      const { api } = yield* account()
      const paths = ["/v1/api-keys/", "/v1/notifications/preferences"]
      const read = yield* Effect.forEach(Array.from({ length: 30 }, (_, n) => paths[n % 2]!), (path) => api.get(path))
      assert.deepStrictEqual([...new Set(read.map(({ status }) => status))], [200, 429])
      const written = yield* Effect.forEach(Array.from({ length: 20 }), () => api.post("/v1/webhooks/", {}))
      assert.deepStrictEqual([...new Set(written.map(({ status }) => status))], [422, 429])
      assert.strictEqual((yield* (yield* account()).api.get("/v1/api-keys/")).status, 200)
    }).pipe(Effect.scoped), 60_000)

  it.live("are refused beyond an address's limit of refused credentials, except for keys accepted before", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ REFUSED_CREDENTIALS_RATE: "5", TRUSTED_PROXIES: "127.0.0.1/32" })
      const account = yield* around.account()
      const ask = (from: string, key: string) =>
        Effect.promise(async () => {
          const headers = { authorization: `Bearer ${key}`, "x-forwarded-for": from }
          const response = await fetch(new URL("/v1/api-keys/", around.instance.origin()), { headers })
          await response.body?.cancel()
          return response.status
        })
      const wrong = `mail_k_${"0".repeat(43)}`
      assert.strictEqual(yield* ask("203.0.113.1", account.key), 200)
      for (let n = 0; n < 5; n++) assert.strictEqual(yield* ask("203.0.113.1", wrong), 401)
      assert.strictEqual(yield* ask("203.0.113.1", wrong), 429)
      assert.strictEqual(yield* ask("203.0.113.1", account.key), 200)
      assert.strictEqual(yield* ask("203.0.113.2", wrong), 401)
    }).pipe(Effect.scoped))
})
