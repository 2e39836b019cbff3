import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { eventTypes, metadataFields, WebhookBody } from "../../../schemas/mail/MailEvent.ts"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { DeliveryNotFound, DeliveryUnderWay, WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import {
  claimAll,
  count,
  dayMillis,
  event,
  failed,
  fixture,
  lawful,
  now,
  on,
  recordOf,
  replays,
  resultOf,
  settle,
  take,
  webhook,
  workJobs,
} from "./WebhookFixture.ts"

/** Ended deliveries of a new or given webhook, delivered or dead letters; returns their ids. */
const ended = Effect.fnUntraced(
  function* (how: "delivered" | "dead_letter", n = 1, of?: { id: WebhookId; accountId: AccountId }) {
    const hook = of ?? (yield* webhook())
    const { sql } = yield* Database
    const { tasks } = yield* take(Array.from({ length: n }, () => event(hook.accountId)))
    const at = yield* now
    if (how === "delivered") yield* settle(tasks.map((task) => resultOf(task, at)))
    else {
      // The eighth failure of each; Defaults.test.ts has the seven before it.
      yield* sql`update delivery_queue set attempt = 8 where webhook_id = ${hook.id}::uuid`
      yield* sql`update delivery_counts set status = 'retrying' where webhook_id = ${hook.id}::uuid and status = 'pending'`
      yield* settle(tasks.map((task) => failed({ ...task, attempt: 8 }, at)))
    }
    return { hook, ids: tasks.map(({ deliveryId }) => deliveryId) }
  },
)

layer(Layer.fresh(fixture()))("Replays", (it) => {
  it.effect("an ended delivery begins again at attempt 1 of the next cycle, with the same id and body", () =>
    Effect.gen(function* () {
      const { one } = yield* replays
      for (const how of ["delivered", "dead_letter"] as const) {
        const { hook, ids: [id] } = yield* ended(how)
        const before = yield* recordOf(hook.accountId, id!)
        assert.strictEqual(before.status, how)
        yield* one(hook.accountId, id!)
        yield* lawful
        const after = yield* recordOf(hook.accountId, id!)
        assert.deepStrictEqual([after.status, after.attempt, after.next_retry_at, after.error], [
          "pending",
          1,
          null,
          null,
        ])
        assert.deepStrictEqual(after.payload, before.payload)
        assert.lengthOf(after.attempts, 1)
        const [task] = yield* claimAll([id!])
        assert.deepStrictEqual([task!.deliveryId, task!.cycle, task!.attempt], [id!, 2, 1])
        yield* settle([resultOf(task!, yield* now)])
        const last = yield* recordOf(hook.accountId, id!)
        assert.deepStrictEqual([last.status, last.attempts.map(({ cycle }) => cycle)], ["delivered", [1, 2]])
        yield* lawful
      }
    }))

  it.effect("deliveries in progress, cancelled, unknown or of another account are not replayed", () =>
    Effect.gen(function* () {
      const { one } = yield* replays
      const hook = yield* webhook()
      const { tasks } = yield* take([event(hook.accountId)])
      const id = tasks[0]!.deliveryId
      assert.instanceOf(yield* Effect.flip(one(hook.accountId, id)), DeliveryUnderWay)
      const { ids: [theirs] } = yield* ended("dead_letter")
      for (const wrong of [theirs!, crypto.randomUUID(), "x"]) {
        assert.instanceOf(yield* Effect.flip(one(hook.accountId, DeliveryId.make(wrong))), DeliveryNotFound)
      }
      yield* (yield* Webhooks).remove(hook.accountId, hook.id)
      assert.instanceOf(yield* Effect.flip(one(hook.accountId, id)), DeliveryUnderWay)
      yield* settle([resultOf(tasks[0]!, yield* now)])
    }))

  it.effect("several requests at once replay a delivery once", () =>
    Effect.gen(function* () {
      const { hook, ids: [id] } = yield* ended("dead_letter")
      const { one } = yield* replays
      const asked = yield* Effect.all(Array.from({ length: 8 }, () => Effect.exit(one(hook.accountId, id!))), {
        concurrency: "unbounded",
      })
      assert.lengthOf(asked.filter(({ _tag }) => _tag === "Success"), 1)
      assert.strictEqual(yield* count("delivery_queue", `delivery_id = '${id}'`), 1)
      yield* lawful
    }))

  it.effect("many: a job queues exactly the span's deliveries, in chunks; the answer is their number", () =>
    Effect.gen(function* () {
      const { many } = yield* replays
      const { hook } = yield* ended("dead_letter", 3)
      yield* TestClock.adjust("1 minute")
      const since = yield* now
      yield* ended("dead_letter", 1_205, hook)
      yield* ended("delivered", 2, hook)
      yield* TestClock.adjust("1 minute")
      const until = yield* now
      yield* ended("dead_letter", 2, hook)
      const span = { since, until, status: "dead_letter" } as const
      assert.strictEqual((yield* many(hook.accountId, hook.id, span)).replayed, 1_205)
      yield* workJobs
      const queued = `webhook_id = '${hook.id}'`
      assert.strictEqual(yield* count("delivery_queue", queued), 1_205)
      assert.strictEqual(yield* count("dead_letters", queued), 5)
      yield* lawful
      assert.strictEqual((yield* many(hook.accountId, hook.id, { ...span, status: "delivered" })).replayed, 2)
      yield* workJobs
      assert.strictEqual(yield* count("delivery_queue", queued), 1_207)
      assert.strictEqual((yield* many(hook.accountId, hook.id, span)).replayed, 0)
      assert.instanceOf(
        yield* Effect.flip(many(hook.accountId, WebhookId.make(crypto.randomUUID()), span)),
        WebhookNotFound,
      )
      yield* lawful
    }))

  it.effect("a webhook that is deleted before its replay runs keeps its dead letters", () =>
    Effect.gen(function* () {
      const { many } = yield* replays
      const { hook, ids } = yield* ended("dead_letter", 4)
      yield* TestClock.adjust(1)
      assert.strictEqual(
        (yield* many(hook.accountId, hook.id, { since: 0, until: null, status: "dead_letter" })).replayed,
        4,
      )
      yield* (yield* Webhooks).remove(hook.accountId, hook.id)
      yield* workJobs
      assert.strictEqual(yield* count("dead_letters", `webhook_id = '${hook.id}'`), 4)
      assert.strictEqual((yield* recordOf(hook.accountId, ids[0]!)).status, "dead_letter")
      yield* lawful
    }))

  it.effect("a dead letter whose day was dropped is restored completely", () =>
    Effect.gen(function* () {
      const { one } = yield* replays
      const { upkeep } = yield* Partitions
      yield* upkeep
      const { hook, ids: [id] } = yield* ended("dead_letter")
      const before = yield* recordOf(hook.accountId, id!)
      yield* Effect.gen(function* () {
        yield* upkeep
        assert.strictEqual(yield* count("deliveries", `id = '${id}'`), 0)
        assert.deepStrictEqual(yield* recordOf(hook.accountId, id!), before)
        yield* one(hook.accountId, id!)
        const after = yield* recordOf(hook.accountId, id!)
        assert.deepStrictEqual([after.status, after.attempts], ["pending", before.attempts])
        assert.deepStrictEqual([after.payload, after.created_at], [before.payload, before.created_at])
        const [task] = yield* claimAll([id!])
        assert.deepStrictEqual([task!.cycle, JSON.parse(task!.body)], [2, before.payload])
        yield* settle([resultOf(task!, yield* now)])
        assert.strictEqual((yield* recordOf(hook.accountId, id!)).status, "delivered")
        yield* lawful
      }).pipe(on((yield* now) + 40 * dayMillis))
    }))

  it.effect("a test queues a complete sample of email.delivered for any webhook that is not paused", () =>
    Effect.gen(function* () {
      const { test } = yield* replays
      const hook = yield* webhook({ events: ["email.failed"] })
      assert.deepStrictEqual(yield* test(hook.accountId, hook.id), { queued: true, url: hook.url })
      const { sql } = yield* Database
      const [row] = yield* sql<{ id: DeliveryId }>`select id from deliveries where webhook_id = ${hook.id}::uuid`
      const record = yield* recordOf(hook.accountId, row!.id)
      assert.deepStrictEqual([record.status, record.event_type], ["pending", "email.delivered"])
      assert.isTrue(Schema.is(WebhookBody)(record.payload))
      assert.hasAllKeys(record.payload.metadata, ["subject", "tag", "domain", "smtp_response"])
      assert.lengthOf(yield* claimAll([row!.id]), 1)
      for (const event of eventTypes) {
        const other = yield* webhook({ events: ["email.failed"] })
        yield* test(other.accountId, other.id, event)
        const [sent] = yield* sql<{ id: DeliveryId }>`select id from deliveries where webhook_id = ${other.id}::uuid`
        const { event_type, payload } = yield* recordOf(other.accountId, sent!.id)
        assert.deepStrictEqual([event_type, payload.event], [event, event])
        assert.isTrue(Schema.is(WebhookBody)(payload))
        assert.hasAllKeys(payload.metadata, ["subject", "tag", ...metadataFields[event]])
      }
      yield* (yield* Webhooks).update(hook.accountId, hook.id, { isActive: false })
      assert.deepStrictEqual(yield* test(hook.accountId, hook.id), { queued: false, url: hook.url })
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 1)
      yield* lawful
    }))

  it.effect("an account has 10 tests and 10 replays per minute; those that are not found do not count", () =>
    Effect.gen(function* () {
      const { many, one, test } = yield* replays
      const hook = yield* webhook()
      for (let i = 0; i < 12; i++) {
        assert.instanceOf(
          yield* Effect.flip(test(hook.accountId, WebhookId.make(crypto.randomUUID()))),
          WebhookNotFound,
        )
        assert.instanceOf(
          yield* Effect.flip(one(hook.accountId, DeliveryId.make(crypto.randomUUID()))),
          DeliveryNotFound,
        )
      }
      const span = { since: 0, until: null, status: "delivered" } as const
      for (let i = 0; i < 10; i++) {
        yield* test(hook.accountId, hook.id)
        yield* many(hook.accountId, hook.id, span)
      }
      for (const over of [test(hook.accountId, hook.id), many(hook.accountId, hook.id, span)]) {
        const refused = yield* Effect.flip(over as Effect.Effect<unknown, WebhookNotFound | RateLimited>)
        assert.instanceOf(refused, RateLimited)
      }
      yield* TestClock.adjust("1 minute")
      yield* test(hook.accountId, hook.id)
      yield* many(hook.accountId, hook.id, span)
    }))
})
