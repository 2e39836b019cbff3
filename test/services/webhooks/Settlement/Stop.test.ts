/** A stop gives back claims that were not begun, and waits up to 5 s for those that were. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { ServerResponse } from "node:http"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, fixture, miscounted, stranded, webhook } from "../WebhookFixture.ts"

/** Six webhooks of one silent host: 64 deliveries on the wire, 32 claimed and waiting. */
const started = Effect.gen(function* () {
  const responses: Array<ServerResponse> = []
  const all = yield* Deferred.make<void>()
  const receiver = yield* serve((request, response) => {
    request.resume()
    if (responses.push(response) === 64) Deferred.doneUnsafe(all, Effect.void)
  })
  const deliveries = yield* Deliveries
  const settling = yield* Effect.forkChild((yield* Settlement).settling)
  for (let i = 0; i < 6; i++) {
    const hook = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
    yield* deliveries.accept(Array.from({ length: 16 }, () => event(hook.accountId)))
  }
  yield* Deferred.await(all)
  assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 96)
  return { responses, settling }
})

layer(Layer.fresh(fixture()))("Stopping deliveries", (it) => {
  it.effect("deliveries that wait in memory are due again at once; those on the wire are settled when they end", () =>
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

layer(Layer.fresh(fixture()))("Stopping deliveries to silent endpoints", (it) => {
  it.effect("ends after five seconds; unanswered attempts are recorded as interrupted, and no claim is left", () =>
    Effect.gen(function* () {
      const { settling } = yield* started
      const stopped = yield* Effect.forkChild(Fiber.interrupt(settling))
      yield* comes(Effect.map(count("delivery_queue", "claim is null"), (n) => n === 32))
      assert.isUndefined(stopped.pollUnsafe())
      yield* TestClock.adjust("5 seconds")
      yield* comes(Effect.sync(() => stopped.pollUnsafe() !== undefined))
      assert.strictEqual(yield* count("delivery_queue", "claim is null and attempts_interrupted = 1"), 64)
      assert.strictEqual(yield* count("delivery_queue", "claim is null and attempts_interrupted = 0"), 32)
      assert.strictEqual(yield* count("attempts", "error = 'interrupted'"), 64)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }))
})

layer(Layer.fresh(fixture()))("Stopping deliveries during an acceptance", (it) => {
  it.effect("claims inserted during the stop are given back, without being sent and without an attempt", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const receiver = yield* serve((request, response) => void request.resume().on("end", () => response.end()))
      const deliveries = yield* Deliveries
      const settling = yield* Effect.forkChild((yield* Settlement).settling)
      const hook = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const [locked, unlock] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const lock = yield* Effect.forkChild(
        owner`lock table events in share mode`.pipe(
          Effect.andThen(Deferred.succeed(locked, undefined)),
          Effect.andThen(Deferred.await(unlock)),
          owner.withTransaction,
        ),
      )
      yield* Deferred.await(locked)
      const accepting = yield* Effect.forkChild(
        deliveries.accept(Array.from({ length: 12 }, () => event(hook.accountId))),
      )
      const waiting = sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      yield* comes(Effect.map(waiting, ({ length }) => length === 1))
      const stopped = yield* Effect.forkChild(Fiber.interruptAll([accepting, settling]), { startImmediately: true })
      yield* Deferred.succeed(unlock, undefined)
      yield* Fiber.join(lock)
      yield* comes(Effect.sync(() => stopped.pollUnsafe() !== undefined))
      assert.strictEqual(yield* count("delivery_queue", "claim is null and attempts_interrupted = 0"), 12)
      assert.strictEqual(yield* count("delivery_queue"), 12)
      assert.strictEqual(receiver.requests.length, 0)
      assert.strictEqual(yield* count("attempts"), 0)
      assert.deepStrictEqual(yield* stranded, [])
    }))
})
