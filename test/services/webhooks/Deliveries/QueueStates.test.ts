/**
 * A queue state's due time is never later than its earliest waiting delivery's; otherwise no scan finds the delivery.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AccountId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { few } from "../../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { Replays } from "../../../../services/webhooks/Replays.ts"
import { specified } from "../../../../services/webhooks/RetrySchedule.ts"
import { Webhooks } from "../../../../services/webhooks/Webhooks.ts"
import { event, failed, fixture, now, resultOf, settle, stranded, take, webhook } from "../WebhookFixture.ts"

/** So many that their settlement is part of the current transaction: fewer use another pool. */
const manyEvents = (accountId: AccountId) => Array.from({ length: few }, () => event(accountId))

/** Runs `change` in a transaction that commits after `meanwhile`. */
const straddling = Effect.fnUntraced(
  function* <A, E, R, E2, R2>(change: Effect.Effect<A, E, R>, meanwhile: Effect.Effect<unknown, E2, R2>) {
    const { sql } = yield* Database
    const changed = yield* Deferred.make<void>()
    const commit = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(
      Effect.tap(change, () => Effect.andThen(Deferred.succeed(changed, undefined), Deferred.await(commit))).pipe(
        sql.withTransaction,
      ),
    )
    yield* Deferred.await(changed)
    yield* meanwhile
    yield* Deferred.succeed(commit, undefined)
    return yield* Fiber.join(fiber)
  },
)

/** A webhook whose queue is due although no delivery waits: the delivery was announced 30 s ago, and is done. */
const dueQueue = Effect.gen(function* () {
  const hook = yield* webhook()
  const deliveries = yield* Deliveries
  const { sql } = yield* Database
  yield* take([event(hook.accountId)], 0)
  const [announcement] = (yield* deliveries.scan).filter(({ webhookId }) => webhookId === hook.id)
  assert.lengthOf(announcement!.deliveryIds, 1)
  const { tasks } = yield* take([event(hook.accountId)])
  yield* settle([resultOf(tasks[0]!, yield* now)])
  yield* sql`delete from delivery_queue where webhook_id = ${hook.id}::uuid`
  yield* TestClock.adjust("30 seconds")
  return { hook, delivered: tasks[0]!.deliveryId }
})

const found = Effect.fnUntraced(function* (webhookId: WebhookId) {
  yield* TestClock.adjust("2 minutes")
  const due = yield* (yield* Deliveries).scan
  return due.filter((announcement) => announcement.webhookId === webhookId).flatMap(({ deliveryIds }) => deliveryIds)
})

layer(Layer.fresh(fixture({ schedule: { ...specified, jitter: 0 } })))("Queue states", (it) => {
  it.effect("a later scan finds deliveries that were accepted during a scan", () =>
    Effect.gen(function* () {
      const { hook } = yield* dueQueue
      const { scan } = yield* Deliveries
      yield* straddling(take([event(hook.accountId)], 0), scan)
      assert.deepStrictEqual(yield* stranded, [])
      assert.lengthOf(yield* found(hook.id), 1)
    }))

  it.effect("a later scan finds retries that were scheduled during a scan", () =>
    Effect.gen(function* () {
      const { hook } = yield* dueQueue
      const { tasks } = yield* take(manyEvents(hook.accountId))
      const { scan } = yield* Deliveries
      const at = yield* now
      yield* straddling(settle(tasks.map((task) => failed(task, at))), scan)
      assert.deepStrictEqual(yield* stranded, [])
      assert.sameMembers(yield* found(hook.id), tasks.map(({ deliveryId }) => deliveryId))
    }))

  it.effect("a later scan finds deliveries that were replayed during a scan", () =>
    Effect.gen(function* () {
      const { delivered, hook } = yield* dueQueue
      const { scan } = yield* Deliveries
      yield* straddling((yield* Replays).again(hook.id, [delivered]), scan)
      assert.deepStrictEqual(yield* stranded, [])
      assert.deepStrictEqual(yield* found(hook.id), [delivered])
    }))

  it.effect("a later scan finds retries that were scheduled while the webhook was resumed", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { sql } = yield* Database
      const { tasks } = yield* take(manyEvents(hook.accountId))
      const at = yield* now
      const { update } = yield* Webhooks
      yield* update(hook.accountId, hook.id, { isActive: false })
      const resuming = Effect.forkChild(update(hook.accountId, hook.id, { isActive: true }))
      const waitsForLock = Effect.repeat(
        sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`,
        { until: ([row]) => row!.n > 0 },
      )
      const resumed = yield* Deferred.make<Fiber.Fiber<unknown, unknown>>()
      yield* straddling(
        settle(tasks.map((task) => failed(task, at))),
        Effect.gen(function* () {
          yield* Deferred.succeed(resumed, yield* resuming)
          yield* waitsForLock
        }),
      )
      yield* Fiber.join(yield* Deferred.await(resumed))
      assert.deepStrictEqual(yield* stranded, [])
      assert.sameMembers(yield* found(hook.id), tasks.map(({ deliveryId }) => deliveryId))
    }))

  it.effect("concurrent scans, acceptances and settlements leave no delivery that scans miss", () =>
    Effect.gen(function* () {
      const hooks = [yield* webhook(), yield* webhook(), yield* webhook()]
      const { scan } = yield* Deliveries
      const writer = (of: (typeof hooks)[number]) =>
        Effect.gen(function* () {
          const { tasks } = yield* take([event(of.accountId), event(of.accountId)], 1)
          const at = yield* now
          yield* settle(tasks.map((task) => failed(task, at)))
          yield* TestClock.adjust("20 seconds")
        })
      yield* Effect.all([
        ...hooks.map((hook) => Effect.repeat(writer(hook), { times: 30 })),
        Effect.repeat(scan, { times: 150 }),
        Effect.repeat(scan, { times: 150 }),
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* stranded, [])
    }))

  it.effect("a paused webhook's deliveries are not announced; all of them are after it is resumed", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { update } = yield* Webhooks
      yield* take(Array.from({ length: 5 }, () => event(hook.accountId)), 0)
      yield* update(hook.accountId, hook.id, { isActive: false })
      assert.lengthOf(yield* found(hook.id), 0)
      yield* update(hook.accountId, hook.id, { isActive: true })
      assert.lengthOf(yield* found(hook.id), 5)
    }))

  it.effect("a lost announcement is repeated after 30 s, not sooner", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { scan } = yield* Deliveries
      yield* take([event(hook.accountId)], 0)
      const mine = Effect.map(scan, (due) => due.filter(({ webhookId }) => webhookId === hook.id).length)
      assert.strictEqual(yield* mine, 1)
      yield* TestClock.adjust(29_999)
      assert.strictEqual(yield* mine, 0)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* mine, 1)
    }))
})

layer(Layer.fresh(fixture({ schedule: { delays: Array<number>(8).fill(300), jitter: 0 } })))(
  "Queue states that are due soon",
  (it) => {
    it.effect("the next scan is due when the earliest queue that is not paused is, and at once if one is overdue", () =>
      Effect.gen(function* () {
        const { scan, untilDue } = yield* Deliveries
        const { sql } = yield* Database
        assert.strictEqual(yield* untilDue(1_000), 1_000)
        const hook = yield* webhook()
        const { tasks } = yield* take([event(hook.accountId)])
        yield* settle([failed(tasks[0]!, yield* now)])
        assert.strictEqual(yield* untilDue(1_000), 307)
        assert.strictEqual(yield* untilDue(100), 100)
        yield* TestClock.adjust(307)
        assert.strictEqual(yield* untilDue(1_000), 0)
        assert.lengthOf((yield* scan).filter(({ webhookId }) => webhookId === hook.id), 1)
        assert.strictEqual(yield* untilDue(1_000), 1_000)
        yield* sql`update webhook_lanes set paused = true, next_due_at = ${new Date(
          0,
        )} where webhook_id = ${hook.id}::uuid`
        assert.strictEqual(yield* untilDue(1_000), 1_000)
      }))
  },
)
