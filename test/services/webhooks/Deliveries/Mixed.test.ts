/** What ended in different ways settles in one batch. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { settle } from "../../../../services/webhooks/Deliveries/SettleAttempts.ts"
import { specified } from "../../../../services/webhooks/RetrySchedule.ts"
import { releasedOf } from "../../../../services/webhooks/Sender/Task.ts"
import { event, failed, miscounted, now, resultOf, take, webhook, world } from "../WebhookWorld.ts"

layer(Layer.fresh(world()))("A batch of results", (it) => {
  it.effect("holds an answer, a failure, and what was given back before it began", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks: [one, two, three] } = yield* take([event(accountId), event(accountId), event(accountId)])
      const at = yield* now
      const { sql } = yield* Database
      const settled = yield* settle(sql, specified, [resultOf(one!, at), failed(two!, at), releasedOf(three!)])
      assert.sameMembers(settled.map(({ next }) => next), ["delivered", "retry", "released"])
      assert.deepStrictEqual(yield* miscounted, [])
    }))
})
