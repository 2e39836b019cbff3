/** Claims are exclusive, and a result is settled only under its row's claim. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { AccountId, type DeliveryId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { millisOf } from "../../../../services/platform/Ids.ts"
import { releasedOf } from "../../../../services/webhooks/Sender/Task.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { Webhooks } from "../../../../services/webhooks/Webhooks.ts"
import {
  claimAll,
  count,
  event,
  failed,
  fixture,
  miscounted,
  now,
  resultOf,
  settle,
  stranded,
  take,
  webhook,
} from "../WebhookFixture.ts"

const rowsOf = (deliveryId: DeliveryId) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const one = (table: string, key: string) =>
      sql.unsafe<Record<string, unknown>>(`select * from ${table} where ${key} = '${deliveryId}'`)
    return {
      delivery: (yield* one("deliveries", "id"))[0]!,
      queue: (yield* one("delivery_queue", "delivery_id"))[0],
      attempts: yield* one("attempts", "delivery_id"),
      letters: yield* one("dead_letters", "delivery_id"),
    }
  })

/** A claimed delivery of a new webhook. */
const claimed = Effect.gen(function* () {
  const hook = yield* webhook()
  const { tasks } = yield* take([event(hook.accountId)])
  return { hook, task: tasks[0]! }
})

layer(Layer.fresh(fixture()))("Deliveries' fence", (it) => {
  it.effect("a result with another claim than the row's changes nothing, whatever its outcome", () =>
    Effect.gen(function* () {
      const { task } = yield* claimed
      const before = yield* rowsOf(task.deliveryId)
      const at = yield* now
      for (const claim of [task.claim + 1_000_000n, task.claim - 1n]) {
        const stale = { ...task, claim }
        const results = [resultOf(stale, at), failed(stale, at), releasedOf(stale)]
        for (const result of results) assert.deepStrictEqual(yield* settle([result]), [])
      }
      assert.deepStrictEqual(yield* rowsOf(task.deliveryId), before)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.lengthOf(yield* settle([resultOf(task, at)]), 1)
    }))

  it.effect("a result that is settled several times, at once or later, counts once", () =>
    Effect.gen(function* () {
      const { task } = yield* claimed
      const result = failed(task, yield* now)
      const all = yield* Effect.all(Array.from({ length: 6 }, () => settle([result])), { concurrency: "unbounded" })
      assert.lengthOf(all.flat(), 1)
      assert.deepStrictEqual(yield* settle([result]), [])
      const { attempts, delivery, queue } = yield* rowsOf(task.deliveryId)
      assert.lengthOf(attempts, 1)
      assert.deepStrictEqual([delivery["status"], delivery["attempt"], queue!["attempt"]], ["retrying", 1, 2])
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("six claims at once never get the same delivery, and each delivery is claimed", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { sql } = yield* Database
      yield* take(Array.from({ length: 60 }, () => event(hook.accountId)), 0)
      const rows = yield* sql<{ id: DeliveryId }>`select id from deliveries where webhook_id = ${hook.id}::uuid`
      const ids = rows.map(({ id }) => id)
      const got = yield* Effect.all(Array.from({ length: 6 }, () => claimAll(ids)), { concurrency: "unbounded" })
      const handed = got.flat().map(({ deliveryId }) => deliveryId)
      assert.lengthOf(handed, new Set(handed).size)
      assert.lengthOf([...handed, ...(yield* claimAll(ids)).map(({ deliveryId }) => deliveryId)], 60)
      for (const one of got) assert.isAtMost(new Set(one.map(({ claim }) => claim)).size, 1)
      yield* settle(got.flat().map((task) => failed(task, 0)))
    }))

  it.effect("the next attempt is due by the schedule, with the same body and a new claim", () =>
    Effect.gen(function* () {
      const { hook, task } = yield* claimed
      const at = yield* now
      yield* settle([failed(task, at)])
      yield* TestClock.setTime(at + 7 + 60_000 - 1)
      assert.lengthOf(yield* claimAll([task.deliveryId]), 0)
      yield* TestClock.setTime(at + 7 + 66_001)
      const [again] = yield* claimAll([task.deliveryId])
      assert.deepStrictEqual([again!.attempt, again!.cycle, again!.body], [2, 1, task.body])
      assert.notStrictEqual(again!.claim, task.claim)
      assert.isAtLeast(again!.leaseUntil, at + 30_000)
      assert.strictEqual(yield* count("webhook_lanes", `webhook_id = '${hook.id}'`), 1)
      yield* settle([resultOf(again!, yield* now)])
      const { attempts, delivery, queue } = yield* rowsOf(task.deliveryId)
      assert.isUndefined(queue)
      assert.lengthOf(attempts, 2)
      assert.deepStrictEqual([delivery["status"], delivery["attempt"], delivery["next_retry_at"]], [
        "delivered",
        2,
        null,
      ])
    }))

  it.effect("deliveries of paused and deleted webhooks are not claimed", () =>
    Effect.gen(function* () {
      const { update, remove } = yield* Webhooks
      for (const end of ["pause", "delete"] as const) {
        const hook = yield* webhook()
        yield* take([event(hook.accountId)], 0)
        const { sql } = yield* Database
        const [row] = yield* sql<{ id: DeliveryId }>`select id from deliveries where webhook_id = ${hook.id}::uuid`
        yield* end === "pause" ? update(hook.accountId, hook.id, { isActive: false }) : remove(hook.accountId, hook.id)
        assert.lengthOf(yield* claimAll([row!.id]), 0, end)
      }
    }))

  it.effect("a claim has the current address and secrets", () =>
    Effect.gen(function* () {
      const { hook, task } = yield* claimed
      const { rotate, update } = yield* Webhooks
      yield* settle([releasedOf(task)])
      yield* update(hook.accountId, hook.id, { url: "http://127.0.0.1:20998/new" })
      const { secret } = yield* rotate(hook.accountId, hook.id, 60)
      const [again] = yield* claimAll([task.deliveryId])
      assert.strictEqual(again!.endpoint.url, "http://127.0.0.1:20998/new")
      assert.strictEqual(again!.endpoint.secret, secret)
      assert.deepStrictEqual(again!.endpoint.old, { secret: hook.secret, until: (yield* now) + 60_000 })
      assert.strictEqual(again!.attempt, 1)
      yield* settle([resultOf(again!, yield* now)])
    }))

  it.effect("unsettled claims are freed and recorded as interrupted; the fifth time makes a dead letter", () =>
    Effect.gen(function* () {
      const { hook, task } = yield* claimed
      const { free } = yield* Settlement
      const { sql } = yield* Database
      for (let time = 1; time <= 5; time++) {
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* free, 0, "freed before its lease ended")
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* free, 1)
        const { attempts, delivery, letters, queue } = yield* rowsOf(task.deliveryId)
        assert.lengthOf(attempts, time)
        assert.isTrue(attempts.every(({ attempt, error }) => attempt === 1 && error === "interrupted"))
        assert.deepStrictEqual(yield* miscounted, [])
        assert.deepStrictEqual(yield* stranded, [])
        if (time === 5) {
          assert.deepStrictEqual([delivery["status"], delivery["error"], queue], [
            "dead_letter",
            "interrupted",
            undefined,
          ])
          assert.lengthOf(letters[0]!["attempts"] as Array<unknown>, 5)
          break
        }
        assert.deepStrictEqual([delivery["status"], queue!["attempts_interrupted"]], ["pending", time])
        assert.lengthOf(yield* claimAll([task.deliveryId]), 1)
      }
      const announced = yield* sql<{ stream: string; payload: string }>`
        select stream, payload from outbox where payload like ${`%${task.deliveryId}%`}
          and stream in ('DEAD_LETTERS', 'NOTIFICATIONS') order by stream`
      assert.deepStrictEqual(announced.map(({ stream }) => stream), ["DEAD_LETTERS", "NOTIFICATIONS"])
      assert.deepStrictEqual(JSON.parse(announced[0]!.payload), {
        delivery_id: task.deliveryId,
        webhook_id: hook.id,
        account_id: hook.accountId,
      })
    }))

  it.effect("one call frees all 450 expired claims", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { free } = yield* Settlement
      yield* take(Array.from({ length: 450 }, () => event(hook.accountId)))
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual(yield* free, 450)
      assert.strictEqual(yield* count("delivery_queue", `webhook_id = '${hook.id}' and claim is null`), 450)
    }))

  it.effect("an event is accepted once per account, also in concurrent batches", () =>
    Effect.gen(function* () {
      const one = yield* webhook()
      const two = yield* webhook()
      const same = event(one.accountId)
      const other = { ...same, accountId: two.accountId }
      const batches = yield* Effect.all([
        take([same, same, other]),
        take([other, same]),
        take([same]),
      ], { concurrency: "unbounded" })
      assert.strictEqual(batches.reduce((sum, { deliveries }) => sum + deliveries, 0), 2)
      assert.strictEqual(batches.reduce((sum, { duplicates }) => sum + duplicates, 0), 4)
      const unknown = yield* take([event(AccountId.make(crypto.randomUUID())), same])
      assert.deepStrictEqual([unknown.unknown, unknown.duplicates, unknown.deliveries], [[0], 1, 0])
    }))

  it.effect("events of a transaction that failed can be accepted again", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { sql } = yield* Database
      const one = event(hook.accountId)
      const broken = yield* Effect.result(
        Effect.andThen(take([one]), sql`select 1 / 0`).pipe(sql.withTransaction),
      )
      assert.isTrue(Result.isFailure(broken))
      const { deliveries, tasks } = yield* take([one])
      assert.strictEqual(deliveries, 1)
      assert.strictEqual(millisOf(tasks[0]!.deliveryId), yield* now)
    }))
})
