/** An account's reads of its webhooks and their deliveries, over HTTP. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomBytes, randomUUID } from "node:crypto"
import type { AccountId } from "../../../../schemas/BrandedIds.ts"
import { DeliveriesApi } from "../../../../schemas/api/DeliveriesApi.ts"
import { WebhooksApi } from "../../../../schemas/api/WebhooksApi.ts"
import { DeliveryList, SentDelivery } from "../../../../schemas/mail/Delivery.ts"
import { DeliveryHours, DeliveryStatistics } from "../../../../schemas/mail/DeliveryStatistics.ts"
import { EventTypes } from "../../../../schemas/mail/EventCatalogue.ts"
import { eventTypes, metadataFields, WebhookBody } from "../../../../schemas/mail/MailEvent.ts"
import { WebhookDetails, WebhookWithSecret } from "../../../../schemas/mail/Webhook.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Vault } from "../../../../services/platform/security/Vault.ts"
import { pruneAccountReceipts } from "../../../../services/platform/security/ReceiptRetention.ts"
import { AccountDeliveries } from "../../../../services/webhooks/AccountDeliveries.ts"
import { headersFor } from "../../../../services/webhooks/Signer.ts"
import { DeliveryStream } from "../../../../services/webhooks/DeliveryStream.ts"
import { DeliveryStats } from "../../../../services/webhooks/DeliveryStats.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { deliveries } from "../../../../src/http/handlers/DeliveriesHandlers.ts"
import { webhooks } from "../../../../src/http/handlers/WebhooksHandlers.ts"
import { Server } from "../../../../src/http/Server.ts"
import {
  event,
  fixture,
  now,
  resultOf,
  retention,
  settle,
  stoppedClock,
  take,
  webhook,
} from "../../../services/webhooks/WebhookFixture.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { follow } from "./NotificationServer.ts"

const publicUrl = new URL("https://mail.example")
const Api = HttpApi.make("bailiwick").add(WebhooksApi, DeliveriesApi)

const app = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([webhooks, deliveries]),
  Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
)

const clock = stoppedClock()

const served = Server.layer(app, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href }).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(DeliveryStream.layer),
  Layer.provideMerge(Layer.mergeAll(AccountDeliveries.layer(retention), DeliveryStats.layer, ApiKeys.layer)),
  Layer.provideMerge(fixture({ clock: clock.layer })),
)

type Headers = Record<string, string>

const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: unknown) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: await response.json() as unknown }
  })
})

const get = (path: string, headers?: Headers) => call("GET", path, headers)

/** A webhook of a new account, and the headers of the account's key. */
const hooked = Effect.gen(function* () {
  const hook = yield* webhook({ events: ["email.delivered", "email.bounced"] })
  const { key } = yield* (yield* ApiKeys).create(
    { accountId: hook.accountId, plan: "business", platformAdmin: false, via: "cookie", keyId: null, authTime: null },
    { name: "CI", permissions: ["send"] },
  )
  return { hook, headers: { authorization: `Bearer ${key}` } }
})

const dead = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const

/** Three dead letters and one delivery that arrived. */
const ended = Effect.fnUntraced(function* (accountId: AccountId) {
  const { tasks } = yield* take(Array.from({ length: 4 }, () => event(accountId)))
  const at = yield* now
  yield* settle(tasks.map((task, i) => resultOf(task, at, i < 3 ? dead : {})))
  return tasks.map(({ deliveryId }) => deliveryId).sort().reverse()
})

const faultsOf = ({ body, status }: { readonly body: unknown; readonly status: number }) => {
  assert.strictEqual(status, 422)
  const { detail } = body as { readonly detail: ReadonlyArray<{ readonly loc: unknown; readonly type: string }> }
  return detail.map(({ loc, type }) => [loc, type])
}

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("reads of webhooks and deliveries", (it) => {
  it.effect("attempts are counted by minute, of all webhooks and of one that the account has", () =>
    Effect.gen(function* () {
      const { headers, hook } = yield* hooked
      yield* ended(hook.accountId)
      const decode = Schema.decodeUnknownSync(DeliveryStatistics)
      const all = yield* get("/v1/webhook-stats", headers)
      assert.strictEqual(all.status, 200)
      const { items } = decode(all.body)
      assert.deepStrictEqual(items.map(({ dead_letter, delivered }) => [delivered, dead_letter]), [[1, 3]])
      assert.deepStrictEqual((yield* get(`/v1/webhooks/${hook.id}/stats`, headers)).body, all.body)
      const later = encodeURIComponent(new Date(Date.parse(items[0]!.minute) + 60_000).toISOString())
      assert.deepStrictEqual(decode((yield* get(`/v1/webhook-stats?since=${later}`, headers)).body).items, [])
      assert.strictEqual((yield* get("/v1/webhook-stats?since=noon", headers)).status, 422)
      const stranger = yield* hooked
      assert.deepStrictEqual(codeOf(yield* get(`/v1/webhooks/${hook.id}/stats`, stranger.headers)), [
        404,
        "not_found",
      ])
      assert.strictEqual((yield* get("/v1/webhook-stats")).status, 401)
      const hours = Schema.decodeUnknownSync(DeliveryHours)((yield* get("/v1/webhook-stats/hours", headers)).body)
      assert.deepStrictEqual(hours.items.map(({ hours, webhook_id }) => [webhook_id, hours.length]), [[hook.id, 1]])
      assert.deepStrictEqual((yield* get("/v1/webhook-stats/hours", stranger.headers)).body, {
        items: [],
        newest: [],
      })
      assert.strictEqual((yield* get("/v1/webhook-stats/hours")).status, 401)
    }))

  it.effect("a stream follows the newest deliveries of its account alone, and needs a credential", () =>
    Effect.gen(function* () {
      const path = "/v1/webhook-deliveries/stream"
      const { headers, hook } = yield* hooked
      const before = yield* ended(hook.accountId)
      const reader = yield* follow(headers, undefined, path)
      assert.strictEqual(reader.status, 200)
      assert.strictEqual(reader.headers["content-type"], "text/event-stream")
      assert.strictEqual(reader.headers["cache-control"], "no-store, no-transform")
      const told = Effect.map(reader.next, (next) => {
        const { data, event } = next ?? assert.fail("the stream ended")
        return [event, (data as unknown as typeof DeliveryList.Type).items.map(({ id }) => id)] as const
      })
      assert.deepStrictEqual(yield* told, ["newest", before])
      const stranger = yield* hooked
      yield* ended(stranger.hook.accountId)
      const after = yield* ended(hook.accountId)
      const seen = new Set<unknown>()
      while (seen.size < after.length) for (const id of (yield* told)[1]!) seen.add(id)
      assert.deepStrictEqual(seen, new Set(after))
      yield* reader.cut
      const { items } = Schema.decodeUnknownSync(DeliveryList)((yield* get("/v1/webhook-deliveries", headers)).body)
      const again = yield* follow(headers, undefined, path)
      assert.deepStrictEqual((yield* again.next)?.data as unknown, { items })
      yield* again.cut
      assert.deepStrictEqual(codeOf(yield* get(path)), [401, "invalid_credentials"])
    }))

  it.effect("a delivery has the request of its last attempt, with no signature and no secret", () =>
    Effect.gen(function* () {
      const { headers, hook } = yield* hooked
      const { tasks: [task] } = yield* take([event(hook.accountId)])
      const path = `/v1/webhook-deliveries/${task!.deliveryId}`
      const before = Schema.decodeUnknownSync(SentDelivery)((yield* get(path, headers)).body)
      assert.isNull(before.request)
      yield* settle([resultOf(task!, yield* now)])
      const read = yield* get(path, headers)
      const { attempts, payload, request } = Schema.decodeUnknownSync(SentDelivery)(read.body)
      assert.strictEqual(request!.url, hook.url)
      assert.strictEqual(request!.body, task!.body)
      assert.deepStrictEqual(JSON.parse(request!.body), payload)
      const startedAt = Date.parse(attempts.at(-1)!.started_at)
      const sent = headersFor({
        deliveryId: task!.deliveryId,
        eventType: task!.eventType,
        attempt: 1,
        timestampSeconds: Math.floor(startedAt / 1_000),
        body: task!.body,
        secrets: [task!.endpoint.secret],
      })
      const masked = { "X-Webhook-Signature": "…", "webhook-signature": "v1,…" }
      assert.deepStrictEqual({ ...request!.headers }, { ...sent, ...masked })
      assert.notInclude(JSON.stringify(read.body), task!.endpoint.secret)
      assert.notProperty(
        (yield* get(`/v1/webhooks/${hook.id}/deliveries/${task!.deliveryId}`, headers)).body,
        "request",
      )
    }))

  it.effect("one webhook is read without its secret, and is 404 to another account", () =>
    Effect.gen(function* () {
      const [{ headers, hook }, other] = [yield* hooked, yield* hooked]
      const read = yield* get(`/v1/webhooks/${hook.id}/`, headers)
      assert.strictEqual(read.status, 200)
      assert.deepInclude(Schema.decodeUnknownSync(WebhookDetails)(read.body), { id: hook.id, overlap_until: null })
      assert.notInclude(JSON.stringify(read.body), hook.secret.slice(6))
      for (const id of [hook.id, randomUUID(), "x"]) {
        assert.deepStrictEqual(codeOf(yield* get(`/v1/webhooks/${id}`, other.headers)), [404, "not_found"])
      }
    }))

  it.effect("deliveries of all webhooks are paged and filtered; another account sees none of them", () =>
    Effect.gen(function* () {
      const [{ headers, hook }, other] = [yield* hooked, yield* hooked]
      const ids = yield* ended(hook.accountId)
      const list = Effect.fnUntraced(function* (query: string, as = headers) {
        const { body, status } = yield* get(`/v1/webhook-deliveries${query}`, as)
        assert.strictEqual(status, 200, JSON.stringify(body))
        const { items, next_after_id } = Schema.decodeUnknownSync(DeliveryList)(body)
        return [items.map(({ id }) => id), next_after_id] as const
      })
      assert.deepStrictEqual(yield* list(""), [ids, null])
      assert.deepStrictEqual(yield* list("/?limit=3"), [ids.slice(0, 3), ids[2]!])
      assert.deepStrictEqual(yield* list(`?limit=3&after_id=${ids[2]!.replaceAll("-", "")}`), [ids.slice(3), null])
      assert.lengthOf((yield* list("?status=dead_letter"))[0], 3)
      assert.deepStrictEqual(yield* list("?status=lost&event_type=x"), [[], null])
      assert.lengthOf((yield* list("?response_status=none"))[0], 3)
      assert.lengthOf((yield* list("?response_status=2xx"))[0], 1)
      assert.deepStrictEqual(yield* list("?email_id=m%00&event_id=x"), [[], null])
      const hour = new Date((yield* now) + 3_600_000).toISOString()
      assert.deepStrictEqual(yield* list(`?since=${hour}`), [[], null])
      assert.lengthOf((yield* list(`?until=${hour}&webhook_id=${hook.id}`))[0], 4)
      for (const query of ["", `?webhook_id=${hook.id}`, `?after_id=${ids[0]}`]) {
        assert.deepStrictEqual(yield* list(query, other.headers), [[], null])
      }
      assert.deepStrictEqual(faultsOf(yield* get("/v1/webhook-deliveries?limit=0&since=today&after_id=1", headers)), [
        [["query", "since"], "datetime_parsing"],
        [["query", "limit"], "greater_than_equal"],
        [["query", "after_id"], "uuid_parsing"],
      ])
    }))

  it.effect("a waiting delivery is retried and cancelled; a repeated key gets the same answer and does nothing", () =>
    Effect.gen(function* () {
      const [{ headers, hook }, other] = [yield* hooked, yield* hooked]
      const { tasks: [task] } = yield* take([event(hook.accountId)])
      const path = `/v1/webhook-deliveries/${task!.deliveryId}`
      const post = (what: string, key?: string, as = headers) =>
        call("POST", `${path}/${what}`, { ...as, ...(key === undefined ? {} : { "idempotency-key": key }) })
      const underWay = yield* post("cancel", "a")
      assert.deepStrictEqual(codeOf(underWay), [409, "invalid_state"])
      yield* settle([resultOf(task!, yield* now, { status: 500 })])
      const id = task!.deliveryId
      const retried = yield* post("retry")
      assert.deepStrictEqual([retried.status, retried.body], [202, { id, status: "retrying" }])
      // The refusal left no receipt.
      const cancelled = yield* post("cancel", "a")
      assert.deepStrictEqual([cancelled.status, cancelled.body], [200, { id, status: "cancelled" }])
      assert.isNull(cancelled.headers.get("idempotency-replayed"))
      const again = yield* post("cancel", "a")
      assert.deepStrictEqual([again.status, again.body], [200, cancelled.body])
      assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      assert.deepStrictEqual(codeOf(yield* post("cancel", "b")), [409, "invalid_state"])
      assert.deepStrictEqual(codeOf(yield* post("cancel", "a", other.headers)), [404, "not_found"])
      assert.deepStrictEqual(faultsOf(yield* post("retry", "two words")), [
        [["header", "idempotency-key"], "string_pattern_mismatch"],
      ])
      assert.strictEqual((yield* call("POST", `${path}/retry`)).status, 401)
      yield* pruneAccountReceipts
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from idempotency_receipts where principal = ${`account:${hook.accountId}`}`, 1)
      yield* clock.set((yield* now) + 8 * 86_400_000)
      yield* pruneAccountReceipts
      assert.deepStrictEqual(yield* sql`select from idempotency_receipts`, [])
    }))

  it.effect("a webhook takes a secret that its owner brings, shows it never, and may begin paused", () =>
    Effect.gen(function* () {
      const { headers } = yield* hooked
      const { sql } = yield* Database
      const post = (more: object) =>
        call("POST", "/v1/webhooks/", headers, {
          url: "https://shop.example/hook",
          events: ["email.delivered"],
          ...more,
        })
      const secretOf = (bytes: number) => `whsec_${randomBytes(bytes).toString("base64")}`
      for (const bytes of [24, 25, 26, 32, 62, 63, 64]) {
        const secret = secretOf(bytes)
        const made = yield* post({ secret, is_active: false })
        assert.strictEqual(made.status, 201, JSON.stringify(made.body))
        const shown = Schema.decodeUnknownSync(WebhookWithSecret)(made.body)
        assert.deepStrictEqual([shown.secret, shown.is_active, shown.health], [null, false, "paused"])
        const [row] = yield* sql<{ paused: boolean; secret: Uint8Array; secret_kid: string }>`
          select l.paused, w.secret, w.secret_kid from webhooks w join webhook_lanes l on l.webhook_id = w.id
          where w.id = ${shown.id}::uuid`
        assert.isTrue(row!.paused)
        const sealed = { kid: row!.secret_kid, bytes: row!.secret }
        const opened = (yield* Vault).open(sealed, { table: "webhooks", column: "secret", row: shown.id })
        assert.strictEqual(Redacted.value(opened), secret)
      }
      const first = yield* post({ secret: null, is_active: null })
      assert.match(String(Object(first.body).secret), /^whsec_/)
      const whole = randomBytes(64).toString("base64").slice(0, -1)
      const wrong = [
        ...[secretOf(23), secretOf(65), `whsec_${whole}`, `whsec_${randomBytes(32).toString("hex")}!`],
        ...[randomBytes(32).toString("base64"), `whsec_${"A".repeat(31)}B`, "", 7],
      ]
      for (const secret of wrong) {
        const refused = yield* post({ secret })
        assert.strictEqual(refused.status, 422, String(secret))
        assert.deepStrictEqual(faultsOf(refused).map(([loc]) => loc), [["body", "secret"]])
        if (typeof secret === "string" && secret !== "") assert.notInclude(JSON.stringify(refused.body), secret)
      }
    }))

  it.effect("a repeated key makes one webhook and one secret, which the repetition does not show", () =>
    Effect.gen(function* () {
      const { headers, hook } = yield* hooked
      const { sql } = yield* Database
      const keyed = (key: string) => ({ ...headers, "idempotency-key": key })
      const body = { url: "https://shop.example/hook", events: ["email.delivered"] }
      const once = Effect.fnUntraced(function* (path: string, sent: unknown, status: number) {
        const all = yield* Effect.all(Array.from({ length: 5 }, () => call("POST", path, keyed("a"), sent)), {
          concurrency: "unbounded",
        })
        assert.deepStrictEqual(all.map((answer) => answer.status), all.map(() => status))
        const [first, ...repeated] = all.sort((a, b) =>
          Number(a.headers.has("idempotency-replayed")) - Number(b.headers.has("idempotency-replayed"))
        )
        const shown = Schema.decodeUnknownSync(WebhookWithSecret)(first!.body)
        assert.match(shown.secret!, /^whsec_/)
        for (const answer of repeated) {
          assert.strictEqual(answer.headers.get("idempotency-replayed"), "true")
          assert.deepStrictEqual(answer.body, { ...shown, secret: null })
        }
        const kept = yield* sql`select from idempotency_receipts where body like ${`%${shown.secret}%`}`
        assert.deepStrictEqual(kept, [])
        return shown
      })
      const made = yield* once("/v1/webhooks/", body, 201)
      const rotated = yield* once(`/v1/webhooks/${made.id}/rotate-secret`, undefined, 200)
      assert.notStrictEqual(rotated.secret, made.secret)
      const [row] = yield* sql`
        select count(*)::int as n, max(version)::int as version from webhooks
        where account_id = ${hook.accountId}::uuid and id <> ${hook.id}::uuid`
      assert.deepStrictEqual(row, { n: 1, version: 2 })
      const audited = yield* sql<{ action: string }>`
        select action from audit_records where subject = ${`webhook:${made.id}`} order by action`
      assert.deepStrictEqual(audited.map(({ action }) => action), ["webhook.created", "webhook.secret-rotated"])
      const reused = yield* call("POST", "/v1/webhooks/", keyed("a"), { ...body, description: "other" })
      assert.deepStrictEqual(codeOf(reused), [409, "idempotency_key_reused"])
      const unkeyed = yield* call("POST", "/v1/webhooks/", headers, body)
      assert.strictEqual(unkeyed.status, 201)
      assert.match(Schema.decodeUnknownSync(WebhookWithSecret)(unkeyed.body).secret!, /^whsec_/)
    }))

  it.effect("a replay is counted before it is asked for, and the count is what the replay says", () =>
    Effect.gen(function* () {
      const [{ headers, hook }, other] = [yield* hooked, yield* hooked]
      yield* ended(hook.accountId)
      const path = `/v1/webhooks/${hook.id}/replay`
      const at = yield* now
      const since = new Date(at - 60_000).toISOString()
      yield* clock.set(at + 1_000)
      const count = (query: string) => Effect.map(get(`${path}?since=${since}${query}`, headers), ({ body }) => body)
      assert.deepStrictEqual(yield* count(""), { deliveries: 3 })
      assert.deepStrictEqual(yield* count("&status=delivered"), { deliveries: 1 })
      assert.deepStrictEqual(yield* count(`&until=${since}`), { deliveries: 0 })
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select from jobs`, [])
      const replay = yield* call("POST", path, headers, { since })
      const asked_at = new Date(yield* now).toISOString()
      assert.deepStrictEqual([replay.status, replay.body], [202, { replayed: 3, asked_at }])
      // What is given up after the replay was asked for is no part of it.
      yield* clock.set(at + 2_000)
      yield* ended(hook.accountId)
      yield* clock.set(at + 3_000)
      const { deliveries: all } = (yield* count("")) as { readonly deliveries: number }
      assert.isAbove(all, 3)
      assert.deepStrictEqual(yield* count(`&asked_at=${asked_at}`), { deliveries: 3 })
      assert.deepStrictEqual(faultsOf(yield* get(`${path}?status=pending`, headers)), [
        [["query", "since"], "missing"],
        [["query", "status"], "literal_error"],
      ])
      for (const id of [hook.id, randomUUID(), "x"]) {
        const answer = yield* get(`/v1/webhooks/${id}/replay?since=${since}`, other.headers)
        assert.deepStrictEqual(codeOf(answer), [404, "not_found"])
      }
    }))

  it.effect("a repeated key tests and replays once, and takes nothing of the limit", () =>
    Effect.gen(function* () {
      const { headers, hook } = yield* hooked
      const [dead] = yield* ended(hook.accountId)
      const { sql } = yield* Database
      const since = new Date((yield* now) - 60_000).toISOString()
      yield* clock.set((yield* now) + 1_000)
      const asked = [
        [`/v1/webhooks/${hook.id}/test`, {}, 200],
        [`/v1/webhooks/${hook.id}/replay`, { since, status: "delivered" }, 202],
        [`/v1/webhook-deliveries/${dead}/replay`, undefined, 202],
      ] as const
      for (const [path, body, status] of asked) {
        const first = yield* call("POST", path, { ...headers, "idempotency-key": "k" }, body)
        assert.strictEqual(first.status, status, path)
        // More than the ten that an account has in a minute.
        for (let n = 0; n < 11; n++) {
          const again = yield* call("POST", path, { ...headers, "idempotency-key": "k" }, body)
          assert.deepStrictEqual([again.status, again.body], [status, first.body], path)
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        }
      }
      const [sent] = yield* sql`
        select count(*) filter (where action = 'webhook.tested')::int as tested,
          count(*) filter (where action like '%.replayed')::int as replayed
        from audit_records where actor = ${`account:${hook.accountId}`}`
      assert.deepStrictEqual(sent, { tested: 1, replayed: 2 })
    }))

  it.effect("the catalogue has every event type with a whole example, and the webhooks that take it", () =>
    Effect.gen(function* () {
      const [{ headers, hook }] = [yield* hooked, yield* hooked]
      const { body, status } = yield* get("/v1/event-types", headers)
      assert.strictEqual(status, 200)
      const { items } = Schema.decodeUnknownSync(EventTypes)(body)
      assert.deepStrictEqual(items.map(({ event_type }) => event_type), [...eventTypes])
      const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats: { "date-time": true } })
      for (const { event_type, example, json_schema, metadata_fields, webhook_ids } of items) {
        const fits = ajv.compile<unknown>(json_schema)
        const { metadata, ...rest } = example
        const cases = [
          [example, true],
          [{ ...example, more: 1, metadata: { ...metadata, tag: null, more: [1] } }, true],
          [{ ...rest, metadata: { tag: null } }, false],
          [rest, false],
          [{ ...example, event: event_type === "email.sent" ? "email.failed" : "email.sent" }, false],
        ] as const
        for (const [body, isSound] of cases) {
          assert.strictEqual(fits(body), isSound, `${event_type} ${JSON.stringify(body)}`)
        }
        assert.containsAllKeys(
          (json_schema["properties"] as { metadata: { properties: object } }).metadata.properties,
          [...metadata_fields],
        )
        assert.isTrue(Schema.is(WebhookBody)(example), event_type)
        assert.strictEqual(example.event, event_type)
        assert.deepStrictEqual(metadata_fields, metadataFields[event_type])
        assert.sameMembers(Object.keys(example.metadata), ["subject", "tag", ...metadata_fields])
        const takes = event_type === "email.delivered" || event_type === "email.bounced"
        assert.deepStrictEqual(webhook_ids, takes ? [hook.id] : [], event_type)
      }
    }))

  it.effect("without a good credential everything is 401", () =>
    Effect.gen(function* () {
      for (
        const path of [
          `/v1/webhooks/${randomUUID()}`,
          "/v1/webhook-deliveries",
          "/v1/webhooks/x/replay",
          "/v1/event-types",
        ]
      ) {
        assert.deepStrictEqual(codeOf(yield* get(path)), [401, "invalid_credentials"], path)
      }
    }))
})
