/** Due deliveries without a slot are claimed in batches as there is room, without further announcements. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { AdaptiveBatchSize } from "../../../../services/webhooks/Deliveries/AdaptiveBatchSize.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, fixture, take, webhook, working } from "../WebhookFixture.ts"

layer(Layer.fresh(Layer.provideMerge(working, fixture())))("BacklogClaims", (it) => {
  it.effect("a backlog of 400 is sent after one announcement of 100, though its queue state is locked", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const hook = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      for (let n = 0; n < 4; n++) yield* take(Array.from({ length: 100 }, () => event(hook.accountId)), 0)
      const due = yield* deliveries.scan
      assert.deepStrictEqual(due.map(({ deliveryIds }) => deliveryIds.length), [100])
      const locked = yield* Deferred.make<void>()
      const done = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        sql`select from webhook_lanes where webhook_id = ${hook.id}::uuid for update`.pipe(
          Effect.andThen(Deferred.succeed(locked, undefined)),
          Effect.andThen(Deferred.await(done)),
          sql.withTransaction,
        ),
      )
      yield* Deferred.await(locked)
      yield* deliveries.dispatch(due)
      yield* comes(Effect.map(count("delivery_queue"), (n) => n === 0))
      yield* Deferred.succeed(done, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size, 400)
      assert.lengthOf(receiver.requests, 400)
    }))

  it("batches are small beside first tries, smaller while rests end late, and full without first tries", () => {
    const pace = new AdaptiveBatchSize()
    assert.isFalse(pace.rests(0))
    const full = pace.batchSize(0)
    pace.firstTries(10_000, 1)
    assert.isTrue(pace.rests(10_500))
    const first = pace.batchSize(10_500)
    assert.isBelow(first, full)
    pace.rested(50)
    assert.strictEqual(pace.batchSize(10_500), first / 2)
    for (let n = 0; n < 10; n++) pace.rested(50)
    assert.isAtLeast(pace.batchSize(10_500), 1)
    for (let n = 0; n < 100; n++) pace.rested(0)
    assert.isAbove(pace.batchSize(10_500), first)
    assert.isBelow(pace.batchSize(10_500), full)
    assert.strictEqual(pace.batchSize(20_000), full)
  })

  it("batches are full 0.1 s after a backlog on the bus ends, and 1 s after a single first try", () => {
    const pace = new AdaptiveBatchSize()
    const full = pace.batchSize(0)
    for (let at = 10_000; at <= 13_000; at += 80) pace.firstTries(at, 500)
    // The last part of the backlog.
    pace.firstTries(13_050, 37)
    assert.isTrue(pace.rests(13_149))
    assert.isFalse(pace.rests(13_150))
    assert.strictEqual(pace.batchSize(13_150), full)
    for (let at = 15_000; at <= 18_000; at += 20) {
      pace.firstTries(at, 1)
      assert.isTrue(pace.rests(at + 990))
    }
    assert.isBelow(pace.batchSize(18_990), full)
    assert.isFalse(pace.rests(19_000))
  })
})
