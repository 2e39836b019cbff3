/** Retrying at once and cancelling, against claims, settlements, replays and each other. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { type AccountId, DeliveryId } from "../../../schemas/BrandedIds.ts"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { DeliveryNotFound, DeliveryNotWaiting } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { WaitingDeliveries } from "../../../services/webhooks/WaitingDeliveries.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import {
  claimAll,
  count,
  event,
  failed,
  fixture,
  lawful,
  now,
  recordOf,
  replays,
  resultOf,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

const asked = Effect.fnUntraced(function* (what: "retryNow" | "cancel", accountId: AccountId, id: DeliveryId) {
  const service = yield* WaitingDeliveries
  return yield* run(yield* service[what](accountId, id))
})

/** A delivery whose first attempt failed. */
const retrying = Effect.gen(function* () {
  const hook = yield* webhook()
  const { tasks: [task] } = yield* take([event(hook.accountId)])
  yield* settle([failed(task!, yield* now)])
  return { hook, accountId: hook.accountId, id: task!.deliveryId }
})

layer(Layer.fresh(fixture()))("deliveries that wait", (it) => {
  it.effect("a retry is due now, found by the scan, and counts as the attempt that it is", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* retrying
      assert.deepStrictEqual(yield* claimAll([id]), [])
      assert.deepStrictEqual(yield* asked("retryNow", accountId, DeliveryId.make(id.toUpperCase())), {
        id,
        status: "retrying",
      })
      yield* lawful
      const at = yield* now
      assert.strictEqual((yield* recordOf(accountId, id)).next_retry_at, new Date(at).toISOString())
      const due = yield* (yield* Deliveries).scan
      assert.include(due.flatMap(({ deliveryIds }) => deliveryIds), id)
      const [task] = yield* claimAll([id])
      assert.deepStrictEqual([task!.attempt, task!.cycle], [2, 1])
      yield* settle([failed(task!, at)])
      const after = yield* recordOf(accountId, id)
      assert.deepStrictEqual([after.status, after.attempt], ["retrying", 2])
      assert.isAbove(Date.parse(after.next_retry_at!), at)
      yield* lawful
    }))

  it.effect("a first attempt that waits for a slot has no next retry, before a retry and after", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      yield* take([event(accountId)], 0)
      const { sql } = yield* Database
      const [row] = yield* sql<{ id: DeliveryId }>`
        select id::text as id from deliveries where account_id = ${accountId}::uuid`
      assert.deepStrictEqual(yield* asked("retryNow", accountId, row!.id), { id: row!.id, status: "pending" })
      assert.isNull((yield* recordOf(accountId, row!.id)).next_retry_at)
      yield* lawful
    }))

  it.effect("a cancelled delivery is never claimed, ends in the counts, and can be replayed", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* retrying
      assert.deepStrictEqual(yield* asked("cancel", accountId, id), { id, status: "cancelled" })
      yield* lawful
      const after = yield* recordOf(accountId, id)
      assert.deepStrictEqual([after.status, after.next_retry_at, after.attempts.length], ["cancelled", null, 1])
      assert.strictEqual(yield* count("delivery_queue", `delivery_id = '${id}'`), 0)
      for (const what of ["cancel", "retryNow"] as const) {
        assert.instanceOf(yield* Effect.flip(asked(what, accountId, id)), DeliveryNotWaiting)
      }
      yield* (yield* replays).one(accountId, id)
      const [task] = yield* claimAll([id])
      assert.deepStrictEqual([task!.cycle, task!.attempt], [2, 1])
      yield* settle([resultOf(task!, yield* now)])
      assert.strictEqual((yield* recordOf(accountId, id)).status, "delivered")
      yield* lawful
    }))

  it.effect("while a process holds the claim, both are refused and the attempt is recorded", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const { tasks: [task] } = yield* take([event(hook.accountId)])
      for (const what of ["cancel", "retryNow"] as const) {
        const refused = yield* Effect.flip(asked(what, hook.accountId, task!.deliveryId))
        assert.deepInclude(refused, { code: "invalid_state", detail: "An attempt is under way." })
      }
      yield* settle([resultOf(task!, yield* now)])
      assert.strictEqual((yield* recordOf(hook.accountId, task!.deliveryId)).status, "delivered")
      yield* lawful
    }))

  it.effect("a claim and a cancel at once: one of the two gets the delivery", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 12; i++) {
        const { accountId, id } = yield* retrying
        yield* asked("retryNow", accountId, id)
        const [claimed, cancelled] = yield* Effect.all(
          [claimAll([id]), Effect.exit(asked("cancel", accountId, id))],
          { concurrency: "unbounded" },
        )
        const status = (yield* recordOf(accountId, id)).status
        assert.strictEqual(Exit.isSuccess(cancelled), status === "cancelled")
        assert.isFalse(claimed.length === 1 && status === "cancelled")
        yield* settle(claimed.map((task) => resultOf(task, 0)))
        yield* lawful
      }
    }))

  it.effect("a command that is cut off before its commit has changed nothing", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* retrying
      const before = yield* recordOf(accountId, id)
      for (const what of ["cancel", "retryNow"] as const) {
        const command = yield* (yield* WaitingDeliveries)[what](accountId, id)
        const cut = yield* Effect.exit(run(Effect.andThen(command, Effect.die("cut off"))))
        assert.isTrue(Exit.isFailure(cut))
        assert.deepStrictEqual(yield* recordOf(accountId, id), before)
        yield* lawful
      }
    }))

  it.effect("a paused or deleted webhook's delivery is not retried; a paused one's can be cancelled", () =>
    Effect.gen(function* () {
      const { remove, update } = yield* Webhooks
      const { accountId, hook, id } = yield* retrying
      yield* update(accountId, hook.id, { isActive: false })
      assert.deepInclude(yield* Effect.flip(asked("retryNow", accountId, id)), { detail: "Its webhook is paused." })
      assert.strictEqual((yield* asked("cancel", accountId, id)).status, "cancelled")
      const other = yield* retrying
      yield* remove(other.accountId, other.hook.id)
      assert.instanceOf(yield* Effect.flip(asked("retryNow", other.accountId, other.id)), DeliveryNotWaiting)
    }))

  it.effect("another account's and unknown ones are not found; 60 a minute are taken", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* retrying
      const stranger = yield* webhook()
      for (const what of ["cancel", "retryNow"] as const) {
        for (const wrong of [crypto.randomUUID(), "x"]) {
          assert.instanceOf(yield* Effect.flip(asked(what, accountId, DeliveryId.make(wrong))), DeliveryNotFound)
        }
        assert.instanceOf(yield* Effect.flip(asked(what, stranger.accountId, id)), DeliveryNotFound)
      }
      for (let i = 0; i < 60; i++) yield* asked("retryNow", accountId, id)
      assert.instanceOf(yield* Effect.flip(asked("retryNow", accountId, id)), RateLimited)
      const { sql } = yield* Database
      const audited = yield* sql`select from audit_records where subject = ${`delivery:${id}`}`
      assert.lengthOf(audited, 60)
    }))
})
