/** The cache of listening webhooks is never used after a change of a webhook was answered. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { accept, acceptAll } from "../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { Endpoints } from "../../../services/webhooks/Endpoints.ts"
import { Listeners } from "../../../services/webhooks/Listeners.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import * as Lines from "../../support/DirectoryLines.ts"
import { account } from "../../support/TestAccounts.ts"
import { count, event, fixture, lease, miscounted, take, webhook } from "./WebhookFixture.ts"

const nobody = AccountId.make("00000000-0000-4000-8000-000000000000")

const acceptor = Effect.gen(function* () {
  const { quick, sql } = yield* Database
  const [endpoints, listeners] = [yield* Endpoints, yield* Listeners]
  return { sql, quick, endpoints, listeners, lease, reserve: () => true, release: () => {} }
})

/** The webhooks to which an event of this account is delivered. */
const deliveredTo = Effect.fnUntraced(function* (accountId: AccountId, fields = {}) {
  const { tasks } = yield* take([event(accountId, fields)])
  return tasks.map(({ endpoint, webhookId }) => [webhookId, endpoint.url])
})

layer(Layer.fresh(fixture()))("Listeners", (it) => {
  it.effect("each change applies to the next event, despite the cache", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const first = yield* webhook()
      const { accountId, id } = first
      assert.deepStrictEqual(yield* deliveredTo(accountId), [[id, first.url]])
      const second = yield* webhook({ of: accountId, url: "http://127.0.0.1:20998/" })
      assert.sameDeepMembers(yield* deliveredTo(accountId), [[id, first.url], [second.id, second.url]])
      yield* webhooks.update(accountId, id, { isActive: false })
      assert.deepStrictEqual(yield* deliveredTo(accountId), [[second.id, second.url]])
      yield* webhooks.update(accountId, id, { isActive: true, url: "http://127.0.0.1:20997/" })
      yield* webhooks.update(accountId, second.id, { events: ["email.opened"] })
      assert.deepStrictEqual(yield* deliveredTo(accountId), [[id, "http://127.0.0.1:20997/"]])
      assert.deepStrictEqual(yield* deliveredTo(accountId, { event: "email.opened" }), [[second.id, second.url]])
      const { secret } = yield* webhooks.rotate(accountId, id, 0)
      const { tasks } = yield* take([event(accountId)])
      assert.strictEqual(tasks[0]!.endpoint.secret, secret)
      yield* webhooks.remove(accountId, id)
      assert.deepStrictEqual(yield* deliveredTo(accountId), [])
      // A removed account is unknown.
      yield* (yield* Directory).apply([Lines.removal("account", accountId, 2)])
      assert.deepStrictEqual((yield* take([event(accountId)])).unknown, [0])
    }))

  it.effect("an event whose webhooks changed after the cache was read is left out and accepted again", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const hook = yield* webhook()
      const other = yield* webhook()
      const own = yield* acceptor
      const taken = [event(hook.accountId), event(other.accountId), event(hook.accountId)]
      yield* accept(own, [event(hook.accountId), event(other.accountId)])
      yield* webhooks.update(hook.accountId, hook.id, { isActive: false })
      const left = yield* accept(own, taken)
      assert.deepStrictEqual([left.outdated, left.deliveries, left.duplicates], [[0, 2], 1, 0])
      const again = yield* accept(own, taken)
      assert.deepStrictEqual([again.outdated, again.deliveries, again.duplicates], [[], 0, 1])
      assert.strictEqual(yield* count("deliveries", `webhook_id = '${hook.id}'`), 1)
      yield* webhooks.update(hook.accountId, hook.id, { isActive: true })
      const turns: Array<boolean> = []
      // The webhook changes in each round until the account is locked.
      const all = yield* acceptAll((some, lock) => {
        turns.push(lock)
        const change = Effect.andThen(own.listeners.of([hook.accountId]), webhooks.rotate(hook.accountId, hook.id, 0))
        return Effect.andThen(lock ? Effect.void : Effect.orDie(change), accept(own, some, lock))
      }, [event(other.accountId), event(hook.accountId), event(nobody)])
      assert.deepStrictEqual(turns, [false, false, true])
      assert.deepStrictEqual([all.outdated, all.unknown, all.deliveries], [[], [2], 2])
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("a change applies to the next event in every process, also while other events are accepted", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const hook = yield* webhook()
      const steady = yield* webhook({ of: hook.accountId })
      const own = yield* acceptor
      // Another process, with its own cache.
      const listeners = Context.get(yield* Layer.build(Layer.fresh(Listeners.layer)), Listeners)
      const goes = Effect.fnUntraced(function* (by: typeof own) {
        const { outdated, tasks } = yield* acceptAll((some, lock) => accept(by, some, lock), [event(hook.accountId)])
        assert.deepStrictEqual(outdated, [])
        return tasks.map(({ webhookId }) => webhookId).sort()
      })
      let over = false
      const others = yield* Effect.forEach([own, { ...own, listeners }], (by) =>
        Effect.forkChild(
          Effect.repeat(Effect.map(goes(by), (to) => assert.include(to, steady.id)), { until: () => over }),
        ))
      for (let n = 0; n < 60; n++) {
        const isActive = n % 2 === 1
        yield* webhooks.update(hook.accountId, hook.id, { isActive })
        const expected = (isActive ? [hook.id, steady.id] : [steady.id]).sort()
        for (const by of [own, { ...own, listeners }]) assert.deepStrictEqual(yield* goes(by), expected)
      }
      over = true
      yield* Effect.forEach(others, Fiber.join)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("after a failover that lost a change, the cached listeners are not used", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const webhooks = yield* Webhooks
      const hook = yield* webhook()
      const { accountId } = hook
      assert.lengthOf(yield* deliveredTo(accountId), 1)
      const [was] = yield* owner<{ listeners: bigint }>`select listeners from accounts where id = ${accountId}::uuid`
      yield* webhooks.update(accountId, hook.id, { events: ["email.opened"] })
      assert.lengthOf(yield* deliveredTo(accountId), 0)
      // The surviving history does not have this change and continues with another.
      yield* owner`alter table webhooks disable trigger webhooks_listen`
      yield* owner`update webhooks set events = array['email.delivered'], version = 1 where id = ${hook.id}::uuid`
      yield* owner`update accounts set listeners = ${was!.listeners} where id = ${accountId}::uuid`
      yield* owner`alter table webhooks enable trigger webhooks_listen`
      const other = yield* webhook({ of: accountId })
      assert.sameMembers((yield* deliveredTo(accountId)).map(([id]) => id), [hook.id, other.id])
    }))

  it.effect("webhooks are read once and then cached, also a thousand for other events", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const accountId = yield* account({ plan: "business" })
      const hook = yield* webhook({ of: accountId, events: ["email.opened"] })
      yield* owner`
        insert into webhooks (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at)
        select gen_random_uuid(), account_id, url, array['email.sent'], true, 1, secret_kid, secret, created_at, updated_at
        from webhooks, generate_series(1, 1000) where id = ${hook.id}::uuid`
      const fields = { event: "email.opened" }
      assert.deepStrictEqual((yield* deliveredTo(accountId, fields)).map(([id]) => id), [hook.id])
      const listening = (yield* (yield* Listeners).of([accountId])).get(accountId)!
      assert.lengthOf(listening.to("email.opened"), 1)
      assert.lengthOf(listening.to("email.sent"), 1_000)
      for (const other of eventTypes.filter((type) => !["email.opened", "email.sent"].includes(type))) {
        assert.lengthOf(listening.to(other), 0)
      }
      // Without the table, any read of it would fail.
      yield* owner`alter table webhooks rename to elsewhere`
      for (let n = 0; n < 20; n++) assert.lengthOf(yield* deliveredTo(accountId, fields), 1)
      yield* owner`alter table elsewhere rename to webhooks`
    }))
})
