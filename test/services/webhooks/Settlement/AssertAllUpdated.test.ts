/**
 * A settlement that misses a row fails: here a trigger hides a row from the UPDATE, as the defect of PostgreSQL does.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { count, event, failed, fixture, miscounted, now, resultOf, settle, take, webhook } from "../WebhookFixture.ts"

layer(Layer.fresh(fixture()))("a settlement", (it) => {
  it.effect("that misses a delivery fails without changes, and succeeds when repeated", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks: [one, two, ...more] } = yield* take(Array.from({ length: 4 }, () => event(accountId)))
      const { owner } = yield* Database
      const at = yield* now
      yield* owner`create function leave_out() returns trigger language plpgsql as $$
        begin if new.id = ${owner.literal(`'${two!.deliveryId}'`)}::uuid then return null; end if; return new; end $$`
      yield* owner`create trigger leave_out before update on deliveries for each row execute function leave_out()`
      const well = settle([one!, two!].map((task) => resultOf(task, at)))
      const badly = settle([failed(two!, at), failed(more[0]!, at)])
      for (const settlement of [Effect.asVoid(well), Effect.asVoid(badly)]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(settlement)))
        assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 4)
        assert.strictEqual(yield* count("attempts"), 0)
      }
      yield* owner`drop trigger leave_out on deliveries`
      assert.lengthOf(yield* well, 2)
      assert.lengthOf(yield* settle(more.map((task) => failed(task, at))), 2)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("of a delivery whose row was dropped ends its claim, whatever the outcome", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const { tasks } = yield* take([event(accountId), event(accountId), event(accountId)])
      const { owner } = yield* Database
      yield* owner`delete from deliveries where webhook_id = ${id}::uuid`
      const at = yield* now
      const dying = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const
      const ends = [resultOf(tasks[0]!, at), failed(tasks[1]!, at), resultOf(tasks[2]!, at, dying)]
      const settled = yield* settle(ends)
      assert.sameMembers(settled.map(({ next }) => next), ["delivered", "retry", "dead"])
      assert.strictEqual(yield* count("delivery_queue", `webhook_id = '${id}' and claim is not null`), 0)
    }))
})
