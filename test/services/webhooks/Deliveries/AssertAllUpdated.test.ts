/** A settlement whose record is left out in silence is no settlement: here a trigger does what a wrong plan does. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { settle } from "../../../../services/webhooks/Deliveries/SettleAttempts.ts"
import { settleDelivered } from "../../../../services/webhooks/Deliveries/SettleDelivered.ts"
import { specified } from "../../../../services/webhooks/RetrySchedule.ts"
import { count, event, failed, miscounted, now, resultOf, take, webhook, world } from "../WebhookWorld.ts"

layer(Layer.fresh(world()))("a settlement", (it) => {
  it.effect("that leaves a delivery out changes nothing, and is done again", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks: [one, two, ...more] } = yield* take(Array.from({ length: 4 }, () => event(accountId)))
      const { owner, sql } = yield* Database
      const at = yield* now
      yield* owner`create function leave_out() returns trigger language plpgsql as $$
        begin if new.id = ${owner.literal(`'${two!.deliveryId}'`)}::uuid then return null; end if; return new; end $$`
      yield* owner`create trigger leave_out before update on deliveries for each row execute function leave_out()`
      const well = settleDelivered(sql, [one!, two!].map((task) => resultOf(task, at)))
      const badly = settle(sql, specified, [failed(two!, at), failed(more[0]!, at)])
      for (const settlement of [Effect.asVoid(well), Effect.asVoid(badly)]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(settlement)))
        assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 4)
        assert.strictEqual(yield* count("attempts"), 0)
      }
      yield* owner`drop trigger leave_out on deliveries`
      assert.lengthOf(yield* well, 2)
      assert.lengthOf(yield* settle(sql, specified, more.map((task) => failed(task, at))), 2)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("of a delivery that is gone with its day ends its claim", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks } = yield* take([event(accountId)])
      const { owner, sql } = yield* Database
      yield* owner`delete from deliveries where id = ${tasks[0]!.deliveryId}::uuid`
      assert.lengthOf(yield* settleDelivered(sql, [resultOf(tasks[0]!, yield* now)]), 1)
    }))
})
