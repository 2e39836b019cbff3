/** A result that the database refuses for a value in it holds up no other result of its batch. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { noon } from "../../../support/Fixtures.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comes, count, event, fixture, lease, miscounted, on, settling, stranded, webhook } from "../WebhookFixture.ts"

layer(Layer.fresh(Layer.provideMerge(settling, fixture())))("A batch with a result that is refused", (it) => {
  it.effect("is halved until that result is alone: the others are settled, and its claim ends with its lease", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { counts, free } = yield* Settlement
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const { accountId } = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const { tasks } = yield* (yield* Deliveries).accept(Array.from({ length: 7 }, () => event(accountId)))
      const [, , refused] = tasks
      yield* owner`create function refuse() returns trigger language plpgsql as $$ begin
        if new.id = ${owner.literal(`'${refused!.deliveryId}'`)}::uuid then
          raise exception 'refused' using errcode = 'numeric_value_out_of_range';
        end if; return new; end $$`
      yield* owner`create trigger refuse before update on deliveries for each row execute function refuse()`
      yield* comes(Effect.map(count("deliveries", "status = 'delivered'"), (n) => n === 6))
      yield* comes(Effect.sync(() => counts().unsettled === 0))
      assert.deepStrictEqual((yield* Sender).slots.load, { claimed: 0, active: 0 })
      const left = `delivery_id = '${refused!.deliveryId}'`
      assert.strictEqual(yield* count("delivery_queue", `claim is not null and ${left}`), 1)
      assert.strictEqual(yield* count("delivery_queue"), 1)

      yield* owner`drop trigger refuse on deliveries`
      assert.strictEqual(yield* on(noon + 10 * lease)(free), 1)
      assert.strictEqual(yield* count("attempts", `error = 'interrupted' and ${left}`), 1)
      assert.lengthOf(receiver.requests, 7)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }))
})
