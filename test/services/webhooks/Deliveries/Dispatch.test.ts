/** Claims, sends and settles through the real Sender, against receivers on loopback. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { Webhooks } from "../../../../services/webhooks/Webhooks.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, fixture, stranded, take, webhook, working } from "../WebhookFixture.ts"

const answering = (status: number) => serve((_, response) => response.writeHead(status).end("ok"))
const at = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}/hook`
const idle = Effect.map(Sender, ({ slots }) => slots.load.claimed === 0)

layer(Layer.fresh(Layer.provideMerge(working, fixture())))("Deliveries", (it) => {
  it.effect("accepted deliveries are sent at once and settled, and their slots are free again", () =>
    Effect.gen(function* () {
      const receiver = yield* answering(204)
      const hook = yield* webhook({ url: at(receiver) })
      const deliveries = yield* Deliveries
      const acceptance = yield* deliveries.accept(Array.from({ length: 40 }, () => event(hook.accountId)))
      assert.deepStrictEqual([acceptance.deliveries, acceptance.duplicates, acceptance.tasks.length], [40, 0, 16])
      assert.isTrue(acceptance.overflow)
      const delivered = count("deliveries", `webhook_id = '${hook.id}' and status = 'delivered'`)
      yield* comes(Effect.map(delivered, (n) => n === 40))
      yield* comes(idle)
      assert.lengthOf(receiver.requests, 40)
      assert.strictEqual(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size, 40)
      assert.strictEqual(yield* count("delivery_queue"), 0)
    }))

  it.effect("a repeated announcement reserves its slots once", () =>
    Effect.gen(function* () {
      const receiver = yield* answering(200)
      const hook = yield* webhook({ url: at(receiver) })
      const deliveries = yield* Deliveries
      yield* take(Array.from({ length: 10 }, () => event(hook.accountId)), 0)
      const due = yield* deliveries.scan
      yield* deliveries.dispatch([...due, ...due])
      yield* deliveries.dispatch(due)
      yield* comes(Effect.map(count("delivery_queue"), (n) => n === 0))
      yield* comes(idle)
      assert.lengthOf(receiver.requests, 10)
    }))

  it.effect("the slots of repeated events are given back", () =>
    Effect.gen(function* () {
      const receiver = yield* answering(200)
      const hook = yield* webhook({ url: at(receiver) })
      const deliveries = yield* Deliveries
      const events = Array.from({ length: 12 }, () => event(hook.accountId))
      yield* deliveries.accept(events)
      yield* comes(idle)
      const { slots } = yield* Sender
      for (let i = 0; i < 3; i++) {
        const again = yield* deliveries.accept([...events, event(hook.accountId), ...events])
        assert.deepStrictEqual([again.deliveries, again.duplicates], [1, 24])
        assert.isAtMost(slots.load.claimed, 1)
        yield* comes(idle)
      }
      assert.lengthOf(receiver.requests, 15)
    }))

  it.effect("claims whose address cannot be read are given back at once, without an attempt", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const receiver = yield* answering(200)
      const hook = yield* webhook()
      const deliveries = yield* Deliveries
      yield* take(Array.from({ length: 10 }, () => event(hook.accountId)), 0)
      yield* (yield* Webhooks).update(hook.accountId, hook.id, { url: at(receiver) })
      // The claim succeeds, and the read of the address and the secrets fails.
      yield* owner`alter table webhooks rename column old_secret to elsewhere`
      const failed = yield* Effect.exit(deliveries.dispatch(yield* deliveries.scan))
      yield* owner`alter table webhooks rename column elsewhere to old_secret`
      assert.strictEqual(failed._tag, "Failure")
      const mine = `webhook_id = '${hook.id}'`
      yield* comes(Effect.map(count("delivery_queue", `${mine} and claim is null`), (n) => n === 10))
      assert.strictEqual(yield* count("delivery_queue", `${mine} and attempts_interrupted > 0`), 0)
      yield* idle.pipe(Effect.map((is) => assert.isTrue(is)))
      assert.deepStrictEqual(yield* stranded, [])
      yield* deliveries.dispatch(yield* deliveries.scan)
      yield* comes(Effect.map(count("delivery_queue"), (n) => n === 0))
      assert.strictEqual(yield* count("deliveries", "first_started_at is not null"), yield* count("deliveries"))
      assert.strictEqual(yield* count("attempts"), 0)
      assert.lengthOf(receiver.requests, 10)
    }))
})
