/** A stop gives back what was not begun, and waits for what was, though not for long. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { ServerResponse } from "node:http"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { serve } from "../../platform/Outbound/servers.ts"
import { comes, count, event, miscounted, stranded, webhook, world } from "../WebhookWorld.ts"

/** 20 webhooks of one silent host: 64 deliveries on the wire, the others claimed and waiting. */
const started = Effect.gen(function* () {
  const responses: Array<ServerResponse> = []
  const all = yield* Deferred.make<void>()
  const receiver = yield* serve((request, response) => {
    request.resume()
    if (responses.push(response) === 64) Deferred.doneUnsafe(all, Effect.void)
  })
  const deliveries = yield* Deliveries
  const settling = yield* Effect.forkChild(deliveries.settling)
  for (let i = 0; i < 6; i++) {
    const hook = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
    yield* deliveries.accept(Array.from({ length: 16 }, () => event(hook.accountId)))
  }
  yield* Deferred.await(all)
  assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 96)
  return { responses, settling }
})

layer(Layer.fresh(world()))("Deliveries, stopping", (it) => {
  it.effect("what waits in memory is due again at once, what is on the wire is settled when it ends", () =>
    Effect.gen(function* () {
      const { responses, settling } = yield* started
      const stopped = yield* Effect.forkChild(Fiber.interrupt(settling))
      yield* comes(Effect.map(count("delivery_queue", "claim is null"), (n) => n === 32))
      assert.strictEqual(yield* count("attempts"), 0)
      for (const response of responses) response.writeHead(200).end("ok")
      yield* comes(Effect.map(count("deliveries", "status = 'delivered'"), (n) => n === 64))
      yield* Fiber.join(stopped)
      assert.deepStrictEqual((yield* Sender).slots.load, { claimed: 0, active: 0 })
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }))
})

layer(Layer.fresh(world()))("Deliveries, stopping beside black holes", (it) => {
  it.effect("it ends after five seconds; the claims of what never answered expire", () =>
    Effect.gen(function* () {
      const { settling } = yield* started
      const stopped = yield* Effect.forkChild(Fiber.interrupt(settling))
      yield* comes(Effect.map(count("delivery_queue", "claim is null"), (n) => n === 32))
      assert.isUndefined(stopped.pollUnsafe())
      yield* TestClock.adjust("5 seconds")
      yield* comes(Effect.sync(() => stopped.pollUnsafe() !== undefined))
      assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 64)
    }))
})
