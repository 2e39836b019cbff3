/** What there was no room for follows as there is room, bite by bite, and asks nobody. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { AdaptiveBatchSize } from "../../../../services/webhooks/Deliveries/AdaptiveBatchSize.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, take, webhook, working, world } from "../WebhookWorld.ts"

layer(Layer.fresh(Layer.provideMerge(working, world())))("Feeding", (it) => {
  it.effect("a mountain is sent after one announcement of its top, though its lane is held by another", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const hook = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      for (let n = 0; n < 4; n++) yield* take(Array.from({ length: 100 }, () => event(hook.accountId)), 0)
      const due = yield* deliveries.scan
      assert.deepStrictEqual(due.map(({ deliveryIds }) => deliveryIds.length), [100])
      const held = yield* Deferred.make<void>()
      const over = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        sql`select from webhook_lanes where webhook_id = ${hook.id}::uuid for update`.pipe(
          Effect.andThen(Deferred.succeed(held, undefined)),
          Effect.andThen(Deferred.await(over)),
          sql.withTransaction,
        ),
      )
      yield* Deferred.await(held)
      yield* deliveries.dispatch(due)
      yield* comes(Effect.map(count("delivery_queue"), (n) => n === 0))
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size, 400)
      assert.lengthOf(receiver.requests, 400)
    }))

  it("bites are small and shrink while rests end late, grow again, and are whole where no first try comes", () => {
    const pace = new AdaptiveBatchSize()
    assert.isFalse(pace.rests(0))
    const whole = pace.bite(0)
    pace.firstTries(10_000, 1)
    assert.isTrue(pace.rests(10_500))
    const first = pace.bite(10_500)
    assert.isBelow(first, whole)
    pace.rested(50)
    assert.strictEqual(pace.bite(10_500), first / 2)
    for (let n = 0; n < 10; n++) pace.rested(50)
    assert.isAtLeast(pace.bite(10_500), 1)
    for (let n = 0; n < 100; n++) pace.rested(0)
    assert.isAbove(pace.bite(10_500), first)
    assert.isBelow(pace.bite(10_500), whole)
    assert.strictEqual(pace.bite(20_000), whole)
  })

  it("after a backlog on the bus bites are whole within a tenth of a second; a lone first try makes them small for one", () => {
    const pace = new AdaptiveBatchSize()
    const whole = pace.bite(0)
    for (let at = 10_000; at <= 13_000; at += 80) pace.firstTries(at, 500)
    // The rest of the last batch.
    pace.firstTries(13_050, 37)
    assert.isTrue(pace.rests(13_149))
    assert.isFalse(pace.rests(13_150))
    assert.strictEqual(pace.bite(13_150), whole)
    for (let at = 15_000; at <= 18_000; at += 20) {
      pace.firstTries(at, 1)
      assert.isTrue(pace.rests(at + 990))
    }
    assert.isBelow(pace.bite(18_990), whole)
    assert.isFalse(pace.rests(19_000))
  })
})
