import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
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
      assert.strictEqual(yield* many(hook.accountId, hook.id, { since, until, status: "dead_letter" }), 5)
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
      assert.strictEqual(yield* many(hook.accountId, hook.id, of("dead_letter", "email.bounced")), 2)
      assert.strictEqual(yield* many(hook.accountId, hook.id, of("delivered", "email.bounced")), 1)
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
      assert.strictEqual(yield* many(own.accountId, own.id, span), 0)
    }))
})
