/** Notices to an account about its webhooks: one a webhook and hour, with a count of the dead letters. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { Settlement } from "../../../services/webhooks/Settlement.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { comes, count, event, fixture, take, webhook, working } from "../webhooks/WebhookFixture.ts"
import { serve } from "../platform/Outbound/LoopbackServers.ts"
import { list } from "./NotificationFixture.ts"

layer(Inbox.layer.pipe(Layer.provideMerge(fixture())))("notices of webhooks", (it) => {
  it.effect("three dead letters at once and two pauses make two notices, mailed once each", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      yield* take([event(hook.accountId), event(hook.accountId), event(hook.accountId)])
      // The fifth attempt that ends without an outcome is the last.
      yield* sql`update delivery_queue set attempts_interrupted = 4 where webhook_id = ${hook.id}::uuid`
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual(yield* (yield* Settlement).free, 3)
      const { update } = yield* Webhooks
      for (const isActive of [false, true, false]) yield* update(hook.accountId, hook.id, { isActive })
      const { items, total, unread } = yield* list(hook.accountId)
      assert.deepStrictEqual(items.map(({ count, title }) => [title, count]).sort(), [
        ["A webhook delivery failed for good", 3],
        ["A webhook was paused", 2],
      ])
      assert.deepStrictEqual([total, unread], [2, 2])
      assert.match(
        items.find(({ count }) => count === 2)!.body,
        /^The webhook to http:\/\/127\.0\.0\.1:20999\/ is paused: /,
      )
      assert.match(
        items.find(({ count }) => count === 3)!.body,
        /of email\.delivered to http:\/\/127\.0\.0\.1:20999\/ is in the dead letter queue: the error was interrupted at attempt 1\. \(3 times/,
      )
      const mails = yield* sql`select from mails where recipient = ${`${hook.accountId}@example.com`}`
      assert.strictEqual(mails.length, 2)
      const letters = yield* sql`select from outbox where stream = 'DEAD_LETTERS'`
      assert.strictEqual(letters.length, 3)
    }))
})

layer(Layer.fresh(Inbox.layer.pipe(Layer.provideMerge(Layer.provideMerge(working, fixture())))))(
  "dead letters",
  (it) => {
    it.effect("a notice names endpoint, event and response, and the next dead letter moves it to the top", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const receiver = yield* serve((_, response) => response.writeHead(503).end("no"))
        const endpoint = `http://127.0.0.1:${receiver.port}/hook`
        const hook = yield* webhook({ url: `${endpoint}?key=secret` })
        const deliveries = yield* Deliveries
        yield* TestClock.adjust(3_600_000 - (yield* Clock.currentTimeMillis) % 3_600_000)
        const die = (n: number) =>
          Effect.gen(function* () {
            yield* take([event(hook.accountId)], 0)
            yield* sql`update delivery_queue set attempt = 8 where webhook_id = ${hook.id}::uuid`
            yield* deliveries.dispatch(yield* deliveries.scan)
            yield* comes(Effect.map(count("dead_letters", `webhook_id = '${hook.id}'`), (dead) => dead === n))
          })
        yield* die(1)
        const [first] = (yield* list(hook.accountId)).items
        assert.include(
          first!.body,
          `of email.delivered to ${endpoint} is in the dead letter queue: the response was 503 at attempt 8.`,
        )
        assert.notInclude(first!.body, "secret")
        yield* (yield* Webhooks).update(hook.accountId, hook.id, { isActive: false })
        yield* (yield* Webhooks).update(hook.accountId, hook.id, { isActive: true })
        const titles = Effect.map(list(hook.accountId), ({ items }) => items.map(({ title }) => title))
        assert.strictEqual((yield* titles)[0], "A webhook was paused")
        yield* TestClock.adjust("1 minute")
        yield* die(2)
        const { items } = yield* list(hook.accountId)
        assert.deepStrictEqual([items[0]!.id, items[0]!.count], [first!.id, 2])
        assert.isAbove(Date.parse(items[0]!.created_at), Date.parse(first!.created_at))
      }))
  },
)
