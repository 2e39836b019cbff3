import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { WebhookId } from "../../../schemas/BrandedIds.ts"
import { WebhookDetails } from "../../../schemas/mail/Webhook.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { noon } from "../../support/Fixtures.ts"
import { account } from "../../support/TestAccounts.ts"
import { count, event, failed, fixture, on, resultOf, session, settle, take, webhook } from "./WebhookFixture.ts"

layer(Layer.fresh(fixture()))("one webhook", (it) => {
  it.effect("is read active and paused, with the time of its last change, and without its secret", () =>
    Effect.gen(function* () {
      const { get, update } = yield* Webhooks
      const { accountId, secret, ...made } = yield* webhook({ url: "http://127.0.0.1:20998/" })
      const fresh = yield* get(accountId, WebhookId.make(made.id.toUpperCase()))
      assert.isTrue(Schema.is(WebhookDetails)(fresh))
      const own = { updated_at: made.created_at, secret_made_at: made.created_at, overlap_until: null }
      assert.deepStrictEqual(fresh, { ...made, ...own })
      assert.notInclude(JSON.stringify(fresh), secret.slice(6))
      yield* update(accountId, made.id, { isActive: false }).pipe(on(noon + 60_000))
      assert.deepStrictEqual(yield* get(accountId, made.id), {
        ...fresh,
        is_active: false,
        health: "paused",
        paused_by: "owner",
        paused_at: new Date(noon + 60_000).toISOString(),
        updated_at: new Date(noon + 60_000).toISOString(),
      })
    }))

  it.effect("has a description that an empty text removes, and that is no other than the one in the list", () =>
    Effect.gen(function* () {
      const { create, get, list, update } = yield* Webhooks
      const accountId = yield* account({ plan: "business" })
      const made = yield* create(accountId, {
        url: "https://hooks.example.com/",
        events: ["email.sent"],
        description: "Orders",
      })
      assert.strictEqual(made.description, "Orders")
      assert.strictEqual((yield* update(accountId, made.id, { url: "https://b.example.com/" })).description, "Orders")
      assert.strictEqual((yield* update(accountId, made.id, { description: "Bounces" })).description, "Bounces")
      assert.include(yield* list(session(accountId), false), '"description":"Bounces"')
      assert.isNull((yield* update(accountId, made.id, { description: "" })).description)
      assert.isNull((yield* get(accountId, made.id)).description)
    }))

  it.effect("says how its attempts went, once they are compacted: unused, healthy, failing since, paused", () =>
    Effect.gen(function* () {
      const { get, remove, update } = yield* Webhooks
      const { compact } = yield* CountCompaction
      const hook = yield* webhook()
      const at = (minutes: number) => new Date(noon + minutes * 60_000).toISOString()
      const ends = Effect.fnUntraced(function* (...attempts: ReadonlyArray<readonly [minutes: number, ok: boolean]>) {
        const { tasks } = yield* take(attempts.map(() => event(hook.accountId)))
        const results = attempts.map(([minutes, ok], i) =>
          (ok ? resultOf : failed)(tasks[i]!, noon + minutes * 60_000 + 500)
        )
        yield* settle(results)
        yield* compact
        const { failing_since, health, last_success_at } = yield* get(hook.accountId, hook.id)
        return [health, last_success_at, failing_since]
      })
      assert.deepStrictEqual(yield* ends(), ["unused", null, null])
      assert.deepStrictEqual(yield* ends([1, false]), ["failing", null, at(1)])
      assert.deepStrictEqual(yield* ends([2, false]), ["failing", null, at(1)])
      assert.deepStrictEqual(yield* ends([3, true], [3, false]), ["healthy", at(3), null])
      assert.deepStrictEqual(yield* ends([5, false], [6, false]), ["failing", at(3), at(5)])
      // An attempt that began earlier is compacted later.
      assert.deepStrictEqual(yield* ends([4, false]), ["failing", at(3), at(4)])
      assert.deepStrictEqual(yield* ends([2, true]), ["failing", at(3), at(4)])
      assert.deepStrictEqual(yield* ends([5, true]), ["failing", at(5), at(6)])
      assert.deepStrictEqual(yield* ends([6, true]), ["healthy", at(6), null])
      assert.deepStrictEqual(yield* ends(), ["healthy", at(6), null])
      const paused = yield* update(hook.accountId, hook.id, { isActive: false })
      assert.deepStrictEqual([paused.health, paused.last_success_at], ["paused", at(6)])
      // Of a deleted webhook nothing is written any more.
      const other = yield* webhook()
      const { tasks } = yield* take([event(other.accountId)])
      yield* remove(other.accountId, other.id)
      yield* settle([resultOf(tasks[0]!, noon)])
      yield* compact
      assert.strictEqual(yield* count("webhook_health", `webhook_id = '${other.id}'`), 0)
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

  it.effect("says when its secret was made, by a rotation anew; nothing where an earlier release made it", () =>
    Effect.gen(function* () {
      const { get, rotate, update } = yield* Webhooks
      const { accountId, created_at, id } = yield* webhook()
      const madeAt = Effect.map(get(accountId, id), ({ secret_made_at }) => secret_made_at)
      yield* update(accountId, id, { description: "later" }).pipe(on(noon + 60_000))
      assert.strictEqual(yield* madeAt, created_at)
      yield* rotate(accountId, id, 0).pipe(on(noon + 90_000))
      assert.strictEqual(yield* madeAt, new Date(noon + 90_000).toISOString())
      const { sql } = yield* Database
      yield* sql`update webhooks set secret_made_at = null where id = ${id}::uuid`
      assert.isNull(yield* madeAt)
    }))

  it.effect("another account's, a deleted one, an unknown one and a text that is no id are not found", () =>
    Effect.gen(function* () {
      const { get, remove } = yield* Webhooks
      const [own, foreign] = [yield* webhook(), yield* webhook()]
      yield* remove(own.accountId, own.id)
      for (const id of [own.id, foreign.id, randomUUID(), "x"]) {
        assert.instanceOf(yield* Effect.flip(get(own.accountId, WebhookId.make(id))), WebhookNotFound)
      }
    }))
})
