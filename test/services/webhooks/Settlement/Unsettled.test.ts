/** Results that the database refuses keep their claims, and nothing more is claimed meanwhile. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { DeliveryId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { expired } from "../../../../services/webhooks/Deliveries/DeliveryClaims.ts"
import { Unsettled } from "../../../../services/webhooks/Settlement/Unsettled.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { noon } from "../../../support/Fixtures.ts"
import { comes, count, event, fixture, lease, miscounted, resultOf, settling, webhook } from "../WebhookFixture.ts"

const resultUntil = (n: number, leaseUntil: number) =>
  resultOf({
    deliveryId: DeliveryId.make(`d${n}`),
    webhookId: WebhookId.make("w"),
    cycle: 1,
    attempt: 1,
    claim: 1n,
    leaseUntil,
  }, 1_000)
const idsOf = (results: ReturnType<Unsettled["take"]>) => results.map(({ task }) => task.deliveryId)

describe("Unsettled", () => {
  it("takes results whose lease ends first, and knows the oldest one also while it is being settled", () => {
    const unsettled = new Unsettled()
    for (const [n, until] of [50, 20, 40, 10, 30].entries()) unsettled.add(resultUntil(n, until), 100 + n)
    assert.deepStrictEqual(idsOf(unsettled.take(2)), ["d3", "d1"])
    assert.deepStrictEqual([unsettled.size, unsettled.waits, unsettled.oldest(), unsettled.firstEnd()], [5, 3, 100, 10])
    unsettled.putBack()
    unsettled.renewed(new Set([DeliveryId.make("d3"), DeliveryId.make("d1")]), 60)
    assert.deepStrictEqual(idsOf(unsettled.take(2)), ["d4", "d2"])
    unsettled.ended()
    assert.deepStrictEqual(unsettled.endingBefore(60).map(({ deliveryId }) => deliveryId), ["d0"])
    assert.deepStrictEqual([unsettled.size, unsettled.oldest()], [3, 100])
    unsettled.take(9)
    unsettled.ended()
    assert.deepStrictEqual([unsettled.size, unsettled.oldest(), unsettled.firstEnd()], [0, undefined, undefined])
  })
})

const gauge = (id: string) =>
  Effect.map(Metric.snapshot, (all) => {
    const found = all.find((metric) => metric.id === id)
    return found?.type === "Gauge" ? Number(found.state.value) : undefined
  })

layer(Layer.fresh(Layer.provideMerge(settling, fixture())))("A settlement that the database refuses", (it) => {
  it.effect("keeps its claims by renewing their leases, and claims nothing more, until it succeeds", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const { accountId } = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      const { slots } = yield* Sender
      yield* owner`alter table attempts rename column duration_ms to elsewhere`
      yield* deliveries.accept(Array.from({ length: 10 }, () => event(accountId)))
      yield* comes(Effect.sync(() => slots.load.claimed === 0 && receiver.requests.length === 10))
      assert.strictEqual(slots.spare, 4_096 - 10)
      yield* TestClock.adjust(lease / 4 + 1_000)
      yield* comes(Effect.sync(() => slots.spare === 0))
      const refused = yield* deliveries.accept([event(accountId)])
      assert.deepStrictEqual([refused.deliveries, refused.tasks.length], [1, 0])
      yield* TestClock.adjust(lease / 2)
      yield* comes(Effect.map(
        count("delivery_queue", `claim is not null and lease_until > '${new Date(noon + lease * 1.5).toISOString()}'`),
        (n) => n === 10,
      ))
      yield* comes(Effect.map(gauge("bailiwick_deliveries_unsettled"), (n) => n === 10))
      assert.isAbove((yield* gauge("bailiwick_deliveries_unsettled_age_seconds"))!, lease / 2_000)
      yield* TestClock.adjust(lease / 2)
      assert.deepStrictEqual(yield* expired(sql, 500), [])

      yield* owner`alter table attempts rename column elsewhere to duration_ms`
      yield* comes(Effect.map(count("deliveries", "status = 'delivered'"), (n) => n === 10))
      yield* comes(Effect.sync(() => slots.spare === 4_096))
      yield* comes(Effect.map(gauge("bailiwick_deliveries_unsettled"), (n) => n === 0))
      assert.lengthOf(receiver.requests, 10)
      assert.strictEqual(yield* count("deliveries", "first_started_at is not null"), 10)
      assert.deepStrictEqual(yield* miscounted, [])
    }))
})
