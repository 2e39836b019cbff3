/** Attempts by minute: what the settlement counts, compacted or not, and what an account sees of it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { type AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { DeliveryHours, DeliveryStatistics } from "../../../schemas/mail/DeliveryStatistics.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { DeliveryStats, type StatsSpan } from "../../../services/webhooks/DeliveryStats.ts"
import { account } from "../../support/TestAccounts.ts"
import { hour, noon, tagOf } from "../../support/Fixtures.ts"
import { dayMillis, event, failed, fixture, on, resultOf, settle, take, webhook } from "./WebhookFixture.ts"

const dead = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const
const decode = Schema.decodeUnknownSync(DeliveryStatistics)
const minute = 60_000

const ofAccount = Effect.fnUntraced(function* (accountId: AccountId, span: StatsSpan = {}) {
  return decode(yield* (yield* DeliveryStats).ofAccount(accountId, span))
})

/** Six attempts in the minute of noon and one in the minute after it, of a webhook. */
const attempts = Effect.gen(function* () {
  const accountId = yield* account({ plan: "business" })
  const hook = yield* webhook({ of: accountId })
  const { tasks } = yield* take(Array.from({ length: 7 }, () => event(accountId)))
  const [a, b, c, d, e, f, g] = tasks
  yield* settle([resultOf(a!, noon, { durationMs: 10 }), resultOf(b!, noon + 59_999, { durationMs: 30 })])
  yield* settle([resultOf(c!, noon + 1_000, { durationMs: 12 })])
  yield* settle([
    { ...failed(d!, noon), durationMs: 90 },
    { ...failed(e!, noon), durationMs: 10 },
    resultOf(f!, noon, dead),
  ])
  yield* settle([resultOf(g!, noon + minute, { durationMs: 7 })])
  return { accountId, hook }
})

layer(Layer.provideMerge(DeliveryStats.layer, Layer.fresh(fixture())))("attempts by minute", (it) => {
  it.effect("are counted by their outcome when they are settled, and the same once they are compacted", () =>
    Effect.gen(function* () {
      const { accountId, hook } = yield* attempts
      const first = yield* ofAccount(accountId)
      assert.deepStrictEqual(
        first.items.map(({ delivered, failed, dead_letter }) => [delivered, failed, dead_letter]),
        [
          [3, 2, 1],
          [1, 0, 0],
        ],
      )
      assert.deepStrictEqual(first.items.map(({ minute }) => Date.parse(minute)), [noon, noon + minute])
      assert.deepStrictEqual([first.items[0]!.ms_max, first.items[1]!.ms_max, first.items[1]!.ms_average], [90, 7, 7])
      // Of 7, 7, 10, 10, 12, 30 and 90 ms: the average of those from 8 to 15 ms, and the slowest.
      assert.deepStrictEqual([first.ms_p50, first.ms_p99], [11, 90])
      assert.isNull(first.next_since)
      const { sql } = yield* Database
      const rows = Effect.map(
        sql<{ n: number }>`select count(*)::int as n from delivery_minutes where webhook_id = ${hook.id}::uuid`,
        ([row]) => row!.n,
      )
      const before = yield* rows
      yield* (yield* CountCompaction).compact
      assert.isBelow(yield* rows, before)
      assert.deepStrictEqual(yield* ofAccount(accountId), first)
      yield* (yield* CountCompaction).compact
      assert.deepStrictEqual(yield* ofAccount(accountId), first)
      const service = yield* DeliveryStats
      assert.deepStrictEqual(decode(yield* service.ofWebhook(accountId, hook.id, {})), first)
    }).pipe(on(noon + hour)))

  it.effect("are summed by the hour, of each webhook, over a day", () =>
    Effect.gen(function* () {
      const { accountId, hook } = yield* attempts
      const quiet = yield* webhook({ of: accountId, events: ["email.bounced"] })
      const other = yield* webhook({ of: accountId })
      const { tasks } = yield* take([event(accountId)])
      yield* settle(tasks.map((task) => resultOf(task, noon + 2 * hour)))
      const service = yield* DeliveryStats
      const read = (millis: number) =>
        service.hours(accountId).pipe(
          on(millis),
          Effect.map((all) => Schema.decodeUnknownSync(DeliveryHours)(all).items),
        )
      const [first, second] = [noon, noon + 2 * hour].map((millis) => new Date(millis).toISOString())
      const one = (of: string | undefined, delivered: number, failed = 0, dead_letter = 0) => ({
        hour: of!,
        delivered,
        failed,
        dead_letter,
      })
      assert.deepStrictEqual(yield* read(noon + 3 * hour), [
        { webhook_id: other.id, hours: [one(second, 1)] },
        { webhook_id: hook.id, hours: [one(first, 4, 2, 1), one(second, 1)] },
      ])
      // The hour that began 23 hours ago is the oldest one.
      const later = yield* read(noon + 24 * hour)
      assert.deepStrictEqual(later.map(({ hours }) => hours.length), [1, 1])
      assert.isFalse(later.some(({ webhook_id }) => webhook_id === quiet.id))
      assert.deepStrictEqual(yield* service.hours(yield* account({ plan: "business" })), { items: [], newest: [] })
      // The newest delivery of each webhook, however old; one that nothing was sent to has none.
      const { newest } = Schema.decodeUnknownSync(DeliveryHours)(
        yield* service.hours(accountId).pipe(on(noon + 5 * dayMillis)),
      )
      assert.deepStrictEqual(newest.map(({ webhook_id, status }) => [webhook_id, status]), [
        [other.id, "delivered"],
        [hook.id, "delivered"],
      ])
      const [made] = yield* (yield* Database).sql<{ id: string; created_at: Date }>`
        select max(id::text) as id, max(created_at) as created_at from deliveries where webhook_id = ${hook.id}::uuid`
      assert.deepStrictEqual(newest[1], {
        webhook_id: hook.id,
        delivery_id: DeliveryId.make(made!.id),
        status: "delivered",
        created_at: made!.created_at.toISOString(),
      })
    }).pipe(on(noon + hour)))

  it.effect("are an account's own, of webhooks that it has", () =>
    Effect.gen(function* () {
      const { hook } = yield* attempts
      const other = yield* account({ plan: "business" })
      const service = yield* DeliveryStats
      assert.deepStrictEqual(yield* ofAccount(other), { items: [], ms_p50: null, ms_p99: null, next_since: null })
      for (const id of [hook.id, randomUUID(), "none"]) {
        assert.strictEqual(yield* tagOf(service.ofWebhook(other, WebhookId.make(id), {})), "WebhookNotFound", id)
      }
    }).pipe(on(noon + hour)))

  it.effect("are paged by day without gap or repeat, and gone after 30 days", () =>
    Effect.gen(function* () {
      const { accountId } = yield* attempts
      const since = noon - 2 * dayMillis
      const until = noon + minute + 1
      let asked = since
      const found: Array<string> = []
      let pages = 0
      for (;;) {
        const { items, next_since } = yield* ofAccount(accountId, { since: asked, until })
        found.push(...items.map(({ minute }) => minute))
        pages++
        if (next_since === null) break
        asked = Date.parse(next_since)
      }
      assert.deepStrictEqual([found.length, pages], [2, 3])
      assert.deepStrictEqual((yield* ofAccount(accountId, { since, until: noon })).items, [])
      const service = yield* DeliveryStats
      yield* service.prune.pipe(on(noon + 30 * dayMillis))
      assert.lengthOf((yield* ofAccount(accountId)).items, 2)
      assert.isAbove(yield* service.prune.pipe(on(noon + 31 * dayMillis)), 0)
      assert.lengthOf((yield* ofAccount(accountId)).items, 0)
    }).pipe(on(noon + hour)))
})
