/** What an account hears of its webhooks: one notice a webhook and hour, with a count, however many letters died. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Database } from "../../../services/platform/Database.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { event, take, webhook, world } from "../webhooks/WebhookWorld.ts"
import { list } from "./NotificationWorld.ts"

layer(Inbox.layer.pipe(Layer.provideMerge(world())))("notices of webhooks", (it) => {
  it.effect("three dead letters at once and two pauses are two notices, mailed once each", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      yield* take([event(hook.accountId), event(hook.accountId), event(hook.accountId)])
      // The fifth attempt that ends without an outcome is the last.
      yield* sql`update delivery_queue set attempts_interrupted = 4 where webhook_id = ${hook.id}::uuid`
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual(yield* (yield* Deliveries).free, 3)
      const { update } = yield* Webhooks
      for (const isActive of [false, true, false]) yield* update(hook.accountId, hook.id, { isActive })
      const { items, total, unread } = yield* list(hook.accountId)
      assert.deepStrictEqual(items.map(({ count, title }) => [title, count]).sort(), [
        ["A webhook delivery failed for good", 3],
        ["A webhook was paused", 2],
      ])
      assert.deepStrictEqual([total, unread], [2, 2])
      const mails = yield* sql`select from mails where recipient = ${`${hook.accountId}@example.com`}`
      assert.strictEqual(mails.length, 2)
      const letters = yield* sql`select from outbox where stream = 'DEAD_LETTERS'`
      assert.strictEqual(letters.length, 3)
    }))
})
