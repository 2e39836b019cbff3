import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { WebhookDetails } from "../../../schemas/mail/Webhook.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import { fixture, on, webhook } from "./WebhookFixture.ts"

layer(Layer.fresh(fixture()))("one webhook", (it) => {
  it.effect("is read active and paused, with the time of its last change, and without its secret", () =>
    Effect.gen(function* () {
      const { get, update } = yield* Webhooks
      const { accountId, secret, ...made } = yield* webhook({ url: "http://127.0.0.1:20998/" })
      const fresh = yield* get(accountId, made.id.toUpperCase())
      assert.isTrue(Schema.is(WebhookDetails)(fresh))
      assert.deepStrictEqual(fresh, { ...made, updated_at: made.created_at, overlap_until: null })
      assert.notInclude(JSON.stringify(fresh), secret.slice(6))
      yield* update(accountId, made.id, { isActive: false }).pipe(on(noon + 60_000))
      assert.deepStrictEqual(yield* get(accountId, made.id), {
        ...fresh,
        is_active: false,
        updated_at: new Date(noon + 60_000).toISOString(),
      })
    }))

  it.effect("says until when two secrets sign, and no longer than that", () =>
    Effect.gen(function* () {
      const { get, rotate } = yield* Webhooks
      const { accountId, id } = yield* webhook()
      const end = noon + 3_600_000
      yield* rotate(accountId, id, 3_600)
      assert.strictEqual((yield* get(accountId, id).pipe(on(end - 1))).overlap_until, new Date(end).toISOString())
      assert.isNull((yield* get(accountId, id).pipe(on(end))).overlap_until)
    }))

  it.effect("another account's, a deleted one, an unknown one and a text that is no id are not found", () =>
    Effect.gen(function* () {
      const { get, remove } = yield* Webhooks
      const [own, foreign] = [yield* webhook(), yield* webhook()]
      yield* remove(own.accountId, own.id)
      for (const id of [own.id, foreign.id, randomUUID(), "x"]) {
        assert.instanceOf(yield* Effect.flip(get(own.accountId, id)), WebhookNotFound)
      }
    }))
})
