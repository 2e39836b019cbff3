import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { count, event, fixture, now, replays, resultOf, settle, take, webhook, workJobs } from "./WebhookFixture.ts"

const dead = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const

/** Deliveries of a webhook that have ended: dead letters, then delivered ones. */
const ended = Effect.fnUntraced(
  function* (
    hook: { readonly accountId: AccountId },
    letters: number,
    delivered: number,
    type: EventType = "email.delivered",
  ) {
    const made = Array.from({ length: letters + delivered }, () => event(hook.accountId, { event: type }))
    const { tasks } = yield* take(made)
    const at = yield* now
    yield* settle(tasks.map((task, i) => resultOf(task, at, i < letters ? dead : {})))
  },
)

layer(Layer.fresh(fixture()))("the count of a replay", (it) => {
  it.effect("is the number that the replay then sends again, and the count sends none", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const hook = yield* webhook()
      yield* ended(hook, 2, 1)
      yield* TestClock.adjust("1 minute")
      const since = yield* now
      yield* ended(hook, 5, 3)
      yield* TestClock.adjust("1 minute")
      const until = yield* now
      yield* ended(hook, 4, 1)
      yield* TestClock.adjust("1 minute")
      const own = `webhook_id = '${hook.id}'`
      for (
        const [span, letters, delivered] of [
          [{ since, until }, 5, 3],
          [{ since, until: null }, 9, 4],
          [{ since: 0, until: since }, 2, 1],
          [{ since: until, until: since }, 0, 0],
        ] as const
      ) {
        const counted = (status: "dead_letter" | "delivered") => counts(hook.accountId, hook.id, { ...span, status })
        assert.deepStrictEqual([yield* counted("dead_letter"), yield* counted("delivered")], [letters, delivered])
      }
      assert.strictEqual(yield* count("jobs"), 0)
      assert.strictEqual(yield* count("delivery_queue", own), 0)
      assert.strictEqual(yield* count("audit_records", `subject = 'webhook:${hook.id}' and action like '%replayed'`), 0)
      assert.strictEqual((yield* many(hook.accountId, hook.id, { since, until, status: "dead_letter" })).replayed, 5)
    }))

  it.effect("of one event type counts and sends that type alone", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const { sql } = yield* Database
      const hook = yield* webhook({ events: ["email.delivered", "email.bounced"] })
      yield* ended(hook, 3, 2)
      yield* ended(hook, 2, 1, "email.bounced")
      yield* TestClock.adjust("1 minute")
      const of = (status: "dead_letter" | "delivered", eventType?: EventType) =>
        ({ since: 0, until: null, status, eventType }) as const
      const counted = (...asked: Parameters<typeof of>) => counts(hook.accountId, hook.id, of(...asked))
      assert.deepStrictEqual(
        [
          yield* counted("dead_letter"),
          yield* counted("dead_letter", "email.bounced"),
          yield* counted("delivered", "email.bounced"),
          yield* counted("delivered", "email.opened"),
        ],
        [5, 2, 1, 0],
      )
      assert.strictEqual((yield* many(hook.accountId, hook.id, of("dead_letter", "email.bounced"))).replayed, 2)
      assert.strictEqual((yield* many(hook.accountId, hook.id, of("delivered", "email.bounced"))).replayed, 1)
      yield* workJobs
      const waiting = yield* sql`
        select event_type, count(*)::int as n from deliveries
        where webhook_id = ${hook.id}::uuid and status = 'pending' group by event_type`
      assert.deepStrictEqual(waiting, [{ event_type: "email.bounced", n: 3 }])
      const told = yield* sql`
        select details from audit_records where subject = ${`webhook:${hook.id}`} and action = 'webhook.replayed' order by id`
      assert.deepStrictEqual(told.map(({ details }) => details), [
        { deliveries: 2, event_type: "email.bounced" },
        { deliveries: 1, event_type: "email.bounced" },
      ])
      // A program of an earlier version would send every type: it leaves a kind that it does not know.
      const kinds = yield* sql`select distinct kind from jobs where args->>'webhook_id' = ${hook.id}`
      assert.deepStrictEqual(kinds, [{ kind: "webhooks.replay-type" }])
    }))

  it.effect("sends no delivery that died after the act, though it was made before", () =>
    Effect.gen(function* () {
      const { many } = yield* replays
      const hook = yield* webhook()
      yield* ended(hook, 2, 0)
      const { tasks } = yield* take([event(hook.accountId)])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(
        (yield* many(hook.accountId, hook.id, { since: 0, until: null, status: "dead_letter" })).replayed,
        2,
      )
      yield* TestClock.adjust("1 minute")
      const at = yield* now
      yield* settle(tasks.map((task) => resultOf(task, at, dead)))
      yield* workJobs
      const own = `webhook_id = '${hook.id}'`
      assert.strictEqual(yield* count("deliveries", `${own} and status = 'pending'`), 2)
      assert.strictEqual(yield* count("dead_letters", own), 1)
      // By a clock that is ahead of this one it dies later: what would not be sent is not counted.
      const { owner } = yield* Database
      const { count: counts } = yield* replays
      yield* owner`update dead_letters set died_at = ${new Date(
        (yield* now) + 1_000,
      )} where webhook_id = ${hook.id}::uuid`
      const span = { since: 0, until: null } as const
      assert.strictEqual(yield* counts(hook.accountId, hook.id, { ...span, status: "dead_letter" }), 0)
    }))

  it.effect("of a rare type reads a bounded number of deliveries at a time, and finds it behind them", () =>
    Effect.gen(function* () {
      const { ended: looks } = yield* Replays
      const { many } = yield* replays
      const { owner, sql } = yield* Database
      const hook = yield* webhook({ events: ["email.delivered", "email.bounced"] })
      const at = yield* now
      yield* owner.unsafe(`
        insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
        select id, '${hook.id}', '${hook.accountId}', id, 'email.delivered', 'delivered', 1, 1, to_timestamp(${
        at / 1_000
      })
        from generate_series(1, 20500) i, lateral (select (lpad(to_hex(${at}), 12, '0') || '7d008000' ||
          lpad(to_hex(i), 12, '0'))::uuid as id) made`)
      yield* TestClock.adjust("1 minute")
      yield* ended(hook, 0, 1, "email.bounced")
      yield* TestClock.adjust("1 minute")
      const span = { since: 0, until: null, status: "delivered", eventType: "email.bounced" } as const
      assert.strictEqual((yield* many(hook.accountId, hook.id, span)).replayed, 1)
      const args = {
        webhook_id: hook.id,
        status: "delivered",
        from: "00000000-0000-0000-0000-000000000000",
        to: "ffffffff-ffff-ffff-ffff-ffffffffffff",
        event_type: "email.bounced",
      } as const
      const first = yield* looks(args, args.from, 1_000)
      assert.deepStrictEqual(first.ids, [])
      const second = yield* looks(args, first.next!, 1_000)
      assert.deepStrictEqual([second.ids.length, second.next], [1, null])
      yield* workJobs
      const waiting = yield* sql`
        select event_type from deliveries where webhook_id = ${hook.id}::uuid and status = 'pending'`
      assert.deepStrictEqual(waiting, [{ event_type: "email.bounced" }])
    }))

  it.effect("another account's webhook and an unknown one are not found; ten counts a minute are allowed", () =>
    Effect.gen(function* () {
      const { count: counts, many } = yield* replays
      const [own, foreign] = [yield* webhook(), yield* webhook()]
      const span = { since: 0, until: null, status: "dead_letter" } as const
      for (const id of [foreign.id, randomUUID(), "x"]) {
        assert.instanceOf(yield* Effect.flip(counts(own.accountId, WebhookId.make(id), span)), WebhookNotFound)
      }
      for (let n = 0; n < 10; n++) assert.strictEqual(yield* counts(own.accountId, own.id, span), 0)
      assert.instanceOf(yield* Effect.flip(counts(own.accountId, own.id, span)), RateLimited)
      // Counts take nothing of the replays' own limit.
      assert.strictEqual((yield* many(own.accountId, own.id, span)).replayed, 0)
    }))
})
