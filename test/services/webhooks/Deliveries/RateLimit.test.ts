/** A webhook's rate: no more deliveries begin in any second, none waits that may begin, and no other webhook waits. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Webhooks } from "../../../../services/webhooks/Webhooks.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, fixture, miscounted, session, stranded, webhook, working } from "../WebhookFixture.ts"

const answering = serve((request, response) => void request.resume().on("end", () => response.end()))

const startsOf = Effect.fnUntraced(function* (webhookId: string) {
  const { owner } = yield* Database
  const rows = yield* owner<{ at: Date }>`
    select first_started_at as at from deliveries
    where webhook_id = ${webhookId}::uuid and first_started_at is not null order by 1`
  return rows.map(({ at }) => at.getTime())
})

const delivered = (webhookId: string, n: number) =>
  comes(Effect.map(count("deliveries", `status = 'delivered' and webhook_id = '${webhookId}'`), (found) => found === n))

/** When the starts are that a sliding second allows, where all wait from `from` on. */
const allowed = (rate: number, n: number, from: number) =>
  Array.from({ length: n }, (_, i) => from + Math.floor(i / rate) * 1_000)

layer(Layer.fresh(Layer.provideMerge(working, fixture())))("The rate of a webhook", (it) => {
  it.effect("begins a burst as the rate allows to the millisecond, from memory and from the queue", () =>
    Effect.gen(function* () {
      const { port } = yield* answering
      const hook = yield* webhook({ url: `http://127.0.0.1:${port}/`, rateLimit: 3 })
      const beside = yield* webhook({ url: `http://127.0.0.1:${port}/`, of: hook.accountId })
      const from = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      const deliveries = yield* Deliveries
      yield* deliveries.accept(Array.from({ length: 14 }, () => event(hook.accountId)))
      // The other webhook of the account, at the same destination, has all of them at once.
      yield* delivered(beside.id, 14)
      for (let second = 1; second <= 5; second++) {
        yield* delivered(hook.id, Math.min(14, 3 * second))
        yield* TestClock.adjust("999 millis")
        assert.strictEqual((yield* startsOf(hook.id)).length, Math.min(14, 3 * second))
        yield* TestClock.adjust("1 millis")
      }
      assert.deepStrictEqual(yield* startsOf(hook.id), allowed(3, 14, from))
      assert.deepStrictEqual(yield* startsOf(beside.id), Array.from({ length: 14 }, () => from))
      assert.deepStrictEqual([yield* miscounted, yield* stranded], [[], []])
    }))

  it.effect(
    "a backlog that is longer than what is claimed goes out at the rate, and no lease ends",
    () =>
      Effect.gen(function* () {
        const { port } = yield* answering
        const hook = yield* webhook({ url: `http://127.0.0.1:${port}/`, rateLimit: 10 })
        const deliveries = yield* Deliveries
        yield* deliveries.accept([event(hook.accountId)])
        yield* delivered(hook.id, 1)
        const claims = count("delivery_queue", `webhook_id = '${hook.id}' and claim is not null`)
        const done = count("deliveries", `status = 'delivered' and webhook_id = '${hook.id}'`)
        yield* deliveries.accept(Array.from({ length: 120 }, () => event(hook.accountId)))
        yield* deliveries.dispatch(yield* deliveries.scan)
        for (let second = 0; second <= 12; second++) {
          // The clock goes on by milliseconds: claims of a backlog rest between their batches.
          const tick = TestClock.adjust("1 millis")
          const expected = Math.min(121, 10 * (second + 1))
          yield* comes(Effect.flatMap(done, (n) => n >= expected ? Effect.succeed(true) : Effect.as(tick, false)))
          assert.isAtMost(yield* claims, 30)
          yield* TestClock.adjust("1 second")
        }
        const starts = yield* startsOf(hook.id)
        assert.strictEqual(starts.length, 121)
        for (let n = 10; n < starts.length; n++) assert.isAtLeast(starts[n]! - starts[n - 10]!, 1_000)
        assert.isAtMost(starts.at(-1)! - starts[0]!, 15_000)
        assert.strictEqual(yield* count("attempts"), 0)
      }),
    60_000,
  )

  it.effect("a rate that is removed holds no delivery that is claimed after the answer", () =>
    Effect.gen(function* () {
      const { port } = yield* answering
      const webhooks = yield* Webhooks
      const hook = yield* webhook({ url: `http://127.0.0.1:${port}/`, rateLimit: 1 })
      const deliveries = yield* Deliveries
      yield* deliveries.accept([event(hook.accountId)])
      yield* delivered(hook.id, 1)
      assert.strictEqual((yield* webhooks.get(hook.accountId, hook.id)).rate_limit, 1)
      yield* webhooks.update(hook.accountId, hook.id, { rateLimit: 0 })
      assert.strictEqual((yield* webhooks.get(hook.accountId, hook.id)).rate_limit, null)
      yield* deliveries.accept(Array.from({ length: 5 }, () => event(hook.accountId)))
      yield* delivered(hook.id, 6)
      assert.isTrue((yield* webhooks.list(session(hook.accountId), false)).includes(`"rate_limit":null`))
    }))
})
