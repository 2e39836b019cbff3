/** Results of all kinds settle in one batch. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { releasedOf } from "../../../../services/webhooks/Sender/Task.ts"
import { event, failed, fixture, miscounted, now, resultOf, settle, take, webhook } from "../WebhookFixture.ts"

layer(Layer.fresh(fixture()))("A batch of results", (it) => {
  it.effect("settles an answer, a failure, a released claim and a last failure", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks: [one, two, three, four] } = yield* take(Array.from({ length: 4 }, () => event(accountId)))
      const at = yield* now
      const dying = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const
      const results = [resultOf(one!, at), failed(two!, at), releasedOf(three!), resultOf(four!, at, dying)]
      const became = new Map((yield* settle(results)).map(({ next, result }) => [result, next]))
      assert.deepStrictEqual(results.map((result) => became.get(result)), ["delivered", "retry", "released", "dead"])
      assert.deepStrictEqual(yield* miscounted, [])
    }))
})
