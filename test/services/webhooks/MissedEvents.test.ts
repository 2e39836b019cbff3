/** Events that came while a webhook was paused: kept, counted, and sent once each by an explicit replay. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../services/platform/Ids.ts"
import { missedEvents, pruneMissed } from "../../../services/webhooks/MissedEvents.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import {
  claimAll,
  count,
  dayMillis,
  event,
  fixture,
  lawful,
  miscounted,
  now,
  on,
  replays,
  resultOf,
  settle,
  take,
  webhook,
  workJobs,
} from "./WebhookFixture.ts"

type Hook = { readonly id: WebhookId; readonly accountId: AccountId }

const pause = (hook: Hook, isActive = false) =>
  Effect.flatMap(Webhooks, ({ update }) => update(hook.accountId, hook.id, { isActive }))

const missed = { since: 0, until: null, status: "missed" } as const

const bodies = Effect.fnUntraced(function* (hook: Hook) {
  const { sql } = yield* Database
  const rows = yield* sql<{ id: DeliveryId; source_id: string; status: string; created_at: Date }>`
    select d.id, e.source_id, d.status, d.created_at from deliveries d join events e on e.id = d.event_id
    where d.webhook_id = ${hook.id}::uuid order by d.id`
  return rows
})

layer(Layer.fresh(fixture()))("events that a paused webhook missed", (it) => {
  it.effect("make no delivery until they are asked for, and then one each, those of the span alone", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const hook = yield* webhook()
      yield* take([event(hook.accountId, { sourceId: "before" })])
      yield* TestClock.adjust("1 second")
      yield* pause(hook)
      yield* take([event(hook.accountId, { sourceId: "first" })])
      yield* TestClock.adjust("1 hour")
      const since = yield* now
      yield* take(["second", "third"].map((sourceId) => event(hook.accountId, { sourceId })))
      yield* take([event(hook.accountId, { sourceId: "third" }), event(hook.accountId, { event: "email.sent" })])
      yield* pause(hook, true)
      yield* TestClock.adjust("1 hour")
      yield* take([event(hook.accountId, { sourceId: "after" })])
      assert.deepStrictEqual((yield* bodies(hook)).map(({ source_id }) => source_id), ["before", "after"])

      assert.strictEqual(yield* counts(hook.accountId, hook.id, missed), 3)
      assert.strictEqual(yield* counts(hook.accountId, hook.id, { ...missed, until: since }), 1)
      assert.strictEqual(yield* counts(hook.accountId, hook.id, { ...missed, since }), 2)
      assert.strictEqual(yield* count("jobs"), 0)

      assert.strictEqual((yield* many(hook.accountId, hook.id, { ...missed, since })).replayed, 2)
      // Asked again before the job ran: its second run finds nothing.
      assert.strictEqual((yield* many(hook.accountId, hook.id, missed)).replayed, 3)
      yield* workJobs
      const all = yield* bodies(hook)
      assert.deepStrictEqual(all.map(({ source_id }) => source_id), ["before", "first", "second", "third", "after"])
      assert.isTrue(all[2]!.created_at.getTime() === since, "it stands where its event came")
      yield* lawful
      assert.strictEqual(yield* counts(hook.accountId, hook.id, missed), 0)
      assert.strictEqual((yield* many(hook.accountId, hook.id, missed)).replayed, 0)
      yield* workJobs
      assert.lengthOf(yield* bodies(hook), 5)

      const tasks = yield* claimAll(all.slice(1, 4).map(({ id }) => id))
      assert.sameMembers(tasks.map(({ body }) => JSON.parse(body).event), Array(3).fill("email.delivered"))
      yield* settle(yield* Effect.map(now, (at) => tasks.map((task) => resultOf(task, at))))
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}' and status = 'delivered'`), 3)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("upkeep reads no note that it keeps, and deletes those of old events", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const hook = yield* webhook()
      const at = yield* now
      const noted = (daysAgo: number, n: number) =>
        owner`
          insert into missed_events (webhook_id, event_id)
          select ${hook.id}::uuid, (left(${leastIdAt(at - daysAgo * 86_400_000)}, 24) || lpad(to_hex(i), 12, '0'))::uuid
          from generate_series(1, ${n}) i`
      yield* noted(1, 20_000)
      yield* noted(60, 10)
      yield* owner`analyze missed_events`
      const [read] = yield* rowsRead(sql, pruneMissed(sql, at - 30 * 86_400_000))
      assert.isAtMost(read.get("missed_events") ?? 0, 100)
      assert.strictEqual(yield* count("missed_events", `webhook_id = '${hook.id}'`), 20_000)
    }))

  it.effect("are noted for each paused webhook that subscribes, beside the deliveries of active ones", () =>
    Effect.gen(function* () {
      const { count: counts } = yield* replays
      const active = yield* webhook()
      const [one, two, other] = [
        yield* webhook({ of: active.accountId }),
        yield* webhook({ of: active.accountId }),
        yield* webhook({ of: active.accountId, events: ["email.sent"] }),
      ]
      for (const hook of [one, two, other]) yield* pause({ ...hook, accountId: active.accountId })
      const { deliveries } = yield* take([event(active.accountId)])
      assert.strictEqual(deliveries, 1)
      yield* TestClock.adjust("1 second")
      const found = yield* Effect.forEach([active, one, two, other], ({ id }) => counts(active.accountId, id, missed))
      assert.deepStrictEqual(found, [0, 1, 1, 0])
    }))

  it.effect("those of one event type are counted and sent without the others", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const { sql } = yield* Database
      const hook = yield* webhook({ events: ["email.delivered", "email.bounced"] })
      yield* pause(hook)
      yield* take([event(hook.accountId), event(hook.accountId, { event: "email.bounced" }), event(hook.accountId)])
      yield* pause(hook, true)
      yield* TestClock.adjust("1 second")
      const bounced = { ...missed, eventType: "email.bounced" } as const
      assert.strictEqual(yield* counts(hook.accountId, hook.id, bounced), 1)
      assert.strictEqual((yield* many(hook.accountId, hook.id, bounced)).replayed, 1)
      yield* workJobs
      const made = yield* sql`select event_type from deliveries where webhook_id = ${hook.id}::uuid`
      assert.deepStrictEqual(made, [{ event_type: "email.bounced" }])
      assert.strictEqual(yield* counts(hook.accountId, hook.id, missed), 2)
    }))

  it.effect("those of a rare type are found behind more notes than one look reads", () =>
    Effect.gen(function* () {
      const { many } = yield* replays
      const { owner, sql } = yield* Database
      const { next } = yield* missedEvents
      const hook = yield* webhook({ events: ["email.bounced"] })
      yield* owner`
        insert into missed_events (webhook_id, event_id)
        select ${hook.id}::uuid, (left(${leastIdAt(yield* now)}, 24) || lpad(to_hex(i), 12, '0'))::uuid
        from generate_series(1, 5500) i`
      yield* TestClock.adjust("1 second")
      yield* pause(hook)
      yield* take([event(hook.accountId, { event: "email.bounced" })])
      yield* pause(hook, true)
      yield* TestClock.adjust("1 second")
      const bounced = { ...missed, eventType: "email.bounced" } as const
      assert.strictEqual((yield* many(hook.accountId, hook.id, bounced)).replayed, 1)
      const span = {
        from: "00000000-0000-0000-0000-000000000000",
        to: "ffffffff-ffff-ffff-ffff-ffffffffffff",
        eventType: bounced.eventType,
      }
      const first = yield* next(hook.id, span, 1_000)
      assert.deepStrictEqual(first.ids, [])
      const second = yield* next(hook.id, { ...span, from: first.next! }, 1_000)
      assert.deepStrictEqual([second.ids.length, second.next], [1, null])
      yield* workJobs
      const made = yield* sql`select event_type from deliveries where webhook_id = ${hook.id}::uuid`
      assert.deepStrictEqual(made, [{ event_type: "email.bounced" }])
      assert.strictEqual(yield* count("missed_events", `webhook_id = '${hook.id}'`), 5_500)
    }))

  it.effect("a replay while it is paused waits until it is resumed", () =>
    Effect.gen(function* () {
      const { many } = yield* replays
      const hook = yield* webhook()
      yield* pause(hook)
      yield* take([event(hook.accountId)])
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* many(hook.accountId, hook.id, missed)).replayed, 1)
      yield* workJobs
      const [made] = yield* bodies(hook)
      assert.lengthOf(yield* claimAll([made!.id]), 0)
      yield* pause(hook, true)
      assert.lengthOf(yield* claimAll([made!.id]), 1)
    }))

  it.effect("two runs of one replay, at once or after a kill, make each delivery once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      yield* pause(hook)
      yield* take(Array.from({ length: 30 }, () => event(hook.accountId)))
      const { deliver, next } = yield* missedEvents
      const span = { from: "00000000-0000-7000-8000-000000000000", to: "ffffffff-ffff-7fff-bfff-ffffffffffff" }
      const { ids } = yield* next(hook.id, span, 100)
      assert.lengthOf(ids, 30)
      // Killed before its commit.
      const killed = deliver(hook.id, ids.slice(0, 10)).pipe(
        Effect.andThen(Effect.fail("killed" as const)),
        sql.withTransaction,
      )
      assert.strictEqual(yield* Effect.flip(killed), "killed")
      assert.lengthOf(yield* bodies(hook), 0)
      const runs = yield* Effect.all([1, 2, 3].map(() => sql.withTransaction(deliver(hook.id, ids))), {
        concurrency: "unbounded",
      })
      assert.deepStrictEqual(runs.sort((a, b) => a - b), [0, 0, 30])
      assert.lengthOf(yield* bodies(hook), 30)
      yield* lawful
    }))

  it.effect("are forgotten with their events, and with their webhook", () =>
    Effect.gen(function* () {
      const { count: counts } = yield* replays
      const { upkeep } = yield* Partitions
      yield* upkeep
      const [kept, gone] = [yield* webhook(), yield* webhook()]
      for (const hook of [kept, gone]) {
        yield* pause(hook)
        yield* take([event(hook.accountId)])
      }
      const notes = (hook: Hook) => count("missed_events", `webhook_id = '${hook.id}'`)
      yield* (yield* Webhooks).remove(gone.accountId, gone.id)
      yield* upkeep
      assert.deepStrictEqual([yield* notes(kept), yield* notes(gone)], [1, 0])
      yield* Effect.gen(function* () {
        yield* upkeep
        assert.strictEqual(yield* counts(kept.accountId, kept.id, missed), 0)
        assert.strictEqual(yield* notes(kept), 0)
      }).pipe(on((yield* now) + 40 * dayMillis))
    }))
})

layer(Layer.fresh(fixture()))("events that a webhook missed", (it) => {
  it.effect("are noted from the first one on where it began paused", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const hook = yield* webhook({ isActive: false })
      const { tasks } = yield* take([event(hook.accountId, { sourceId: "first" })])
      assert.deepStrictEqual([tasks, yield* bodies(hook)], [[], []])
      yield* pause(hook, true)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* counts(hook.accountId, hook.id, missed), 1)
      yield* many(hook.accountId, hook.id, missed)
      yield* workJobs
      assert.deepStrictEqual((yield* bodies(hook)).map(({ source_id }) => source_id), ["first"])
    }))
})
