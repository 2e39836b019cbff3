import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { DeliveryPage, DeliveryStatus, FullDeliveryRecord } from "../../../schemas/mail/Delivery.ts"
import { DeliveryNotFound, WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { DeliveryRecords, type PageRequest } from "../../../services/webhooks/DeliveryRecords.ts"
import { userAgent } from "../../../services/webhooks/Signer.ts"
import { specified } from "../../../services/webhooks/RetrySchedule.ts"
import { WebhookJobs } from "../../../services/webhooks/WebhookJobs.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import {
  count,
  dayMillis,
  event,
  failed,
  fixture,
  miscounted,
  now,
  on,
  replays,
  resultOf,
  session,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

type Hook = { readonly id: WebhookId; readonly accountId: AccountId }
const page = Effect.fnUntraced(function* (hook: Hook, request: Partial<PageRequest> = {}) {
  const text = yield* (yield* DeliveryRecords).page(session(hook.accountId), hook.id, {
    page: 0,
    limit: 20,
    ...request,
  })
  return Schema.decodeUnknownSync(Schema.fromJsonString(DeliveryPage))(text)
})
const full = Schema.decodeUnknownSync(Schema.fromJsonString(FullDeliveryRecord))
const dead = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const

/**
 * 25 deliveries: 10 delivered, 6 retrying, 4 dead letters, 5 pending of which 2 are claimed; their ids, newest first.
 */
const history = Effect.gen(function* () {
  const hook = yield* webhook()
  const { sql } = yield* Database
  const { tasks } = yield* take(Array.from({ length: 25 }, () => event(hook.accountId)), 22)
  const at = yield* now
  yield* settle(tasks.slice(0, 10).map((task) => resultOf(task, at)))
  yield* settle(tasks.slice(10, 16).map((task) => failed(task, at)))
  yield* settle(tasks.slice(16, 20).map((task) => resultOf(task, at, dead)))
  const rows = yield* sql<{ id: DeliveryId; status: string }>`
    select id, status from deliveries where webhook_id = ${hook.id}::uuid order by id desc`
  return { hook, rows }
})

layer(Layer.fresh(fixture({ schedule: { ...specified, jitter: 0 } })))("DeliveryRecords", (it) => {
  it.effect("pages are newest first, without gaps or repeats, each with the total; past the end they are empty", () =>
    Effect.gen(function* () {
      const { hook, rows } = yield* history
      const ids = rows.map(({ id }) => id)
      for (const limit of [1, 7, 25, 100]) {
        const seen: Array<string> = []
        for (let n = 0; n * limit < 25; n++) {
          const { items, ...rest } = yield* page(hook, { page: n, limit })
          assert.deepStrictEqual(rest, { total: 25, page: n, limit })
          seen.push(...items.map(({ id }) => id))
        }
        assert.deepStrictEqual(seen, ids)
      }
      for (const past of [2, 1_000, 100_000_000]) {
        assert.deepStrictEqual(yield* page(hook, { page: past }), { items: [], total: 25, page: past, limit: 20 })
      }
    }))

  it.effect("pages with deliveries of earlier days have no gaps or repeats, also when they are cached", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { sql } = yield* Database
      for (const [days, deliveries] of [[40, 3], [10, 4], [1, 2], [0, 5]] as const) {
        const accepted = take(Array.from({ length: deliveries }, () => event(hook.accountId)))
        const { tasks } = yield* accepted.pipe(on(noon - days * dayMillis))
        // Dead letters stay readable when the partition of their day is dropped.
        yield* settle(tasks.slice(0, 1).map((task) => resultOf(task, noon - days * dayMillis, dead)))
      }
      const ids = (yield* sql<{ id: DeliveryId }>`
        select id from deliveries where webhook_id = ${hook.id}::uuid order by id desc`).map(({ id }) => id)
      assert.lengthOf(ids, 14)
      for (const _ of ["read", "cached"]) {
        for (const limit of [1, 3, 7, 8, 14, 20]) {
          const seen: Array<string> = []
          for (let n = 0; n * limit < ids.length; n++) {
            const { items, total } = yield* page(hook, { page: n, limit })
            assert.strictEqual(total, ids.length)
            seen.push(...items.map(({ id }) => id))
          }
          assert.deepStrictEqual(seen, ids)
        }
      }
    }))

  it.effect("each status filters and counts its deliveries, also after a compaction; other texts find nothing", () =>
    Effect.gen(function* () {
      const { hook, rows } = yield* history
      for (const compacted of [false, true]) {
        if (compacted) yield* (yield* CountCompaction).compact
        for (const status of DeliveryStatus.literals) {
          const own = rows.filter((row) => row.status === status).map(({ id }) => id)
          const { items, total } = yield* page(hook, { status, limit: 100 })
          assert.deepStrictEqual(items.map(({ id }) => id), own, status)
          assert.strictEqual(total, own.length, status)
          const second = yield* page(hook, { status, limit: 3, page: 1 })
          assert.deepStrictEqual(second.items.map(({ id }) => id), own.slice(3, 6), status)
        }
        for (const status of ["", "Delivered", "';--", "\u{1f511}"]) {
          const { items, total } = yield* page(hook, { status })
          assert.deepStrictEqual([items, total], [[], 0], status)
        }
      }
    }))

  it.effect("a record has the error of an attempt without a response and the time of the next one", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { tasks } = yield* take([event(hook.accountId)])
      const [task] = tasks
      const { get } = yield* DeliveryRecords
      const fresh = full(yield* get(hook.accountId, task!.deliveryId))
      assert.deepStrictEqual([fresh.status, fresh.attempt, fresh.response_status, fresh.endpoint_url, fresh.attempts], [
        "pending",
        1,
        null,
        null,
        [],
      ])
      const at = yield* now
      const silence = { ending: "silent", status: null, error: "dns", body: null, durationMs: 12 } as const
      yield* settle([resultOf(task!, at, silence)])
      const text = yield* get(hook.accountId, task!.deliveryId, hook.id)
      assert.deepStrictEqual(full(text), {
        ...fresh,
        status: "retrying",
        error: "dns",
        endpoint_url: "http://127.0.0.1:20999/",
        next_retry_at: new Date(at + 12 + 60_000).toISOString(),
        attempts: [{
          cycle: 1,
          attempt: 1,
          started_at: new Date(at).toISOString(),
          duration_ms: 12,
          response_status: null,
          error: "dns",
          request_headers: {
            "content-type": "application/json",
            "User-Agent": userAgent,
            "X-Webhook-Signature": "…",
            "X-Webhook-Event": "email.delivered",
            "X-Webhook-Delivery": task!.deliveryId,
            "X-Webhook-Attempt": "1",
            "webhook-id": task!.deliveryId,
            "webhook-timestamp": String(Math.floor(at / 1000)),
            "webhook-signature": "v1,…",
          },
          response_headers: null,
          response_body: null,
        }],
      })
      assert.strictEqual(JSON.stringify(JSON.parse(text).payload), task!.body)
    }))

  it.effect("each failed attempt has its answer, bounded; as a dead letter and after a replay of one as well", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { get } = yield* DeliveryRecords
      const hook = yield* webhook()
      const { tasks: [first] } = yield* take([event(hook.accountId)])
      const claimAgain = (attempt: number) =>
        Effect.map(
          sql<{ claim: bigint }>`
            update delivery_queue set claim = nextval('delivery_claims'), lease_until = due_at
            where delivery_id = ${first!.deliveryId}::uuid returning claim`,
          ([row]) => ({ ...first!, attempt, claim: row!.claim }),
        )
      let task = first!
      const at = yield* now
      for (let attempt = 1; attempt <= 8; attempt++) {
        if (attempt > 1) task = yield* claimAgain(attempt)
        const headers = attempt === 3 ? null : { "x-attempt": String(attempt), "x-odd": `"\\\u00e9` }
        yield* settle([
          resultOf(task, at + attempt * 1_000, { status: 500, body: "b".repeat(10_000 * attempt), headers }),
        ])
      }
      const answers = (text: string) =>
        full(text).attempts.map(({ request_headers, response_body, response_headers }) => [
          request_headers["X-Webhook-Attempt"],
          response_headers?.["x-attempt"] ?? null,
          response_headers?.["x-odd"] ?? null,
          response_body?.length,
        ])
      const expected = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
        n === 3 ? [`${n}`, null, null, 4_096] : [`${n}`, `${n}`, `"\\\u00e9`, 4_096]
      )
      const read = get(hook.accountId, first!.deliveryId)
      assert.deepStrictEqual(answers(yield* read), expected)
      assert.strictEqual(full(yield* read).response_body?.length, 80_000)
      assert.deepStrictEqual(
        JSON.parse(yield* read).request.headers,
        full(yield* read).attempts.at(-1)!.request_headers,
      )
      // Its day was dropped.
      for (const table of ["attempts where delivery_id", "deliveries where id"]) {
        yield* sql.unsafe(`delete from ${table} = '${first!.deliveryId}'`)
      }
      assert.deepStrictEqual(answers(yield* read), expected)
      yield* (yield* replays).one(hook.accountId, first!.deliveryId)
      assert.deepStrictEqual(answers(yield* read), expected)
    }))

  it.effect("a success keeps the header fields that its result has, and stays in its place when it is replayed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { get } = yield* DeliveryRecords
      const hook = yield* webhook()
      const { tasks } = yield* take([1, 2, 3].map(() => event(hook.accountId)))
      const at = yield* now
      const odd: Readonly<Record<string, string>> = { "x-trace": `"\\\u00e9` }
      const kept = [odd, null, {}]
      yield* settle(tasks.map((task, i) => resultOf(task, at, { headers: kept[i] ?? null })))
      const read = (i: number) => Effect.map(get(hook.accountId, tasks[i]!.deliveryId), full)
      const headers = (i: number) =>
        Effect.map(read(i), ({ attempts }) => attempts.map(({ response_headers }) => response_headers))
      assert.deepStrictEqual(yield* Effect.forEach([0, 1, 2], headers), kept.map((one) => [one]))
      // Only where there is something to keep, the attempt has a row of its own.
      const rows = yield* sql<{ id: string }>`
        select delivery_id as id from attempts where delivery_id = any(${tasks.map((task) => task.deliveryId)}::uuid[])`
      assert.sameMembers(rows.map(({ id }) => id), [tasks[0]!.deliveryId, tasks[2]!.deliveryId])
      assert.deepStrictEqual(
        { ...(yield* read(0)).attempts[0], response_headers: null },
        {
          ...(yield* read(1)).attempts[0]!,
          request_headers: (yield* read(0)).attempts[0]!.request_headers,
        },
      )
      yield* (yield* replays).one(hook.accountId, tasks[0]!.deliveryId)
      assert.deepStrictEqual(yield* headers(0), [odd])
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("deliveries of other accounts and webhooks, unknown ids and texts that are no ids are not found", () =>
    Effect.gen(function* () {
      const { hook, rows } = yield* history
      const stranger = yield* webhook()
      const own = yield* webhook({ of: hook.accountId })
      const { get, page } = yield* DeliveryRecords
      const asked = { page: 0, limit: 20 }
      for (const id of [stranger.id, crypto.randomUUID(), "x"]) {
        assert.instanceOf(yield* Effect.flip(page(session(hook.accountId), WebhookId.make(id), asked)), WebhookNotFound)
      }
      const dead = rows.find(({ status }) => status === "dead_letter")!.id
      for (const id of [rows[0]!.id, dead]) {
        assert.instanceOf(yield* Effect.flip(get(stranger.accountId, id)), DeliveryNotFound)
        assert.instanceOf(yield* Effect.flip(get(hook.accountId, id, own.id)), DeliveryNotFound)
      }
      for (const id of ["x", crypto.randomUUID()]) {
        assert.instanceOf(yield* Effect.flip(get(hook.accountId, DeliveryId.make(id))), DeliveryNotFound)
      }
    }))

  it.effect("a deleted webhook has no list; its deliveries stay readable, and waiting ones are cancelled", () =>
    Effect.gen(function* () {
      const { hook, rows } = yield* history
      const { get, page } = yield* DeliveryRecords
      yield* (yield* Webhooks).remove(hook.accountId, hook.id)
      const asked = page(session(hook.accountId), hook.id, { page: 0, limit: 20 })
      assert.instanceOf(yield* Effect.flip(asked), WebhookNotFound)
      const work = Effect.flatMap(WebhookJobs, ({ workers }) => Effect.flatMap(Jobs, (jobs) => jobs.work(workers)))
      yield* work
      const statuses: Array<string> = []
      for (const { id } of rows) {
        const { next_retry_at, status } = full(yield* get(hook.accountId, id))
        assert.isNull(next_retry_at)
        statuses.push(status)
      }
      assert.deepStrictEqual(
        ["cancelled", "pending", "retrying", "delivered", "dead_letter"].map((s) =>
          statuses.filter((t) => t === s).length
        ),
        [9, 2, 0, 10, 4],
      )
      // The two claimed ones return to the queue and are cancelled then; the job ends when no delivery can return any
      // more.
      const { sql } = yield* Database
      yield* sql`update delivery_queue set claim = null, lease_until = null where webhook_id = ${hook.id}::uuid`
      yield* TestClock.adjust("20 seconds")
      yield* work
      assert.strictEqual(yield* count("delivery_queue", `webhook_id = '${hook.id}'`), 0)
      assert.strictEqual(yield* count("jobs", `args->>'webhook_id' = '${hook.id}' and state = 'effective'`), 1)
      assert.deepStrictEqual(yield* miscounted, [])
    }))
})
