/** An operator pauses and resumes any account's webhook, and makes what waits for it due. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { WebhookId } from "../../../schemas/BrandedIds.ts"
import { WebhookHeld } from "../../../schemas/problems/WebhookProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { type InTransaction, run } from "../../../services/platform/database/UnitOfWork.ts"
import { WebhookHolds } from "../../../services/webhooks/WebhookHolds.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { claimAll, event, failed, fixture, lawful, now, settle, take, webhook } from "./WebhookFixture.ts"

const by = { actor: "person:oz", details: { reason: "floods a third party" } }

const held = Effect.fnUntraced(function* (what: "pause" | "resume" | "kick", id: WebhookId) {
  const holds = yield* WebhookHolds
  const doing: Effect.Effect<object | string | null, SqlError.SqlError, InTransaction> = holds[what](id, by)
  return yield* run(doing)
})

const told = Effect.fnUntraced(function* (accountId: string) {
  const { sql } = yield* Database
  return yield* sql<{ title: string; body: string }>`
    select title, body from notifications where account_id = ${accountId}::uuid order by id`
})

layer(Layer.fresh(fixture()))("webhooks that an operator holds", (it) => {
  it.effect("only an operator resumes one, the account learns that and not why, and nothing is sent meanwhile", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const webhooks = yield* Webhooks
      const { tasks: [task] } = yield* take([event(accountId)])
      yield* settle([failed(task!, yield* now)])
      const paused = yield* held("pause", id)
      assert.deepInclude(paused, { webhook_id: id, account_id: accountId, is_active: false, paused_by: "operator" })
      assert.strictEqual(yield* held("pause", id), "paused_by_operator")
      const view = yield* webhooks.get(accountId, id)
      assert.deepInclude(view, {
        health: "paused",
        paused_by: "operator",
        paused_at: new Date(yield* now).toISOString(),
      })
      const refused = yield* Effect.exit(webhooks.update(accountId, id, { isActive: true }))
      assert.isTrue(Exit.hasFails(refused) && JSON.stringify(refused).includes(new WebhookHeld({}).code))
      // Its other settings are the account's still, and its own pause changes nothing.
      const renamed = yield* webhooks.update(accountId, id, { description: "held", isActive: false })
      assert.deepInclude(renamed, { description: "held", paused_by: "operator" })
      assert.strictEqual(yield* held("kick", id), "paused_by_operator")
      assert.deepStrictEqual((yield* take([event(accountId)])).tasks, [])
      assert.deepInclude(yield* held("resume", id), { is_active: true, paused_at: null, paused_by: null })
      assert.deepInclude(yield* webhooks.get(accountId, id), { is_active: true, paused_at: null, paused_by: null })
      assert.strictEqual(yield* held("resume", id), "active")
      const notices = yield* told(accountId)
      assert.isTrue(notices.length > 0)
      for (const { body } of notices) assert.notInclude(body, by.details.reason)
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select action, actor, details ->> 'reason' as reason from audit_records
          where subject = ${`webhook:${id}`} and actor = 'person:oz' order by id`,
        [
          { action: "webhook.paused", actor: "person:oz", reason: by.details.reason },
          { action: "webhook.resumed", actor: "person:oz", reason: by.details.reason },
        ],
      )
    }))

  it.effect("the account's own pause stays beneath, and no operator ends it", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const webhooks = yield* Webhooks
      assert.deepInclude(yield* webhooks.update(accountId, id, { isActive: false }), { paused_by: "owner" })
      assert.strictEqual(yield* held("resume", id), "paused_by_owner")
      yield* held("pause", id)
      assert.deepInclude(yield* held("resume", id), { is_active: false, paused_by: "owner" })
      assert.strictEqual(yield* held("resume", id), "paused_by_owner")
      assert.deepInclude(yield* webhooks.update(accountId, id, { isActive: true }), {
        is_active: true,
        paused_at: null,
      })
    }))

  it.effect("what waits is due now, counts as the attempt that it is, and what is claimed is left alone", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const { tasks } = yield* take([event(accountId), event(accountId), event(accountId)])
      const at = yield* now
      yield* settle(tasks.slice(0, 2).map((task) => failed(task, at)))
      const waiting = tasks.slice(0, 2).map(({ deliveryId }) => deliveryId)
      assert.deepStrictEqual(yield* claimAll(waiting), [])
      const { sql } = yield* Database
      const nextTries = sql<{ at: Date | null }>`
        select next_retry_at as at from deliveries where webhook_id = ${id}::uuid order by next_retry_at nulls last`
      assert.isTrue((yield* nextTries).slice(0, 2).every((one) => one.at!.getTime() > at))
      assert.deepStrictEqual(yield* held("kick", id), { deliveries: 2 })
      // What an account sees as the time of the next try; one at its first attempt has none.
      assert.deepStrictEqual((yield* nextTries).map(({ at }) => at?.getTime() ?? null), [at, at, null])
      yield* lawful
      const claimed = yield* claimAll(waiting)
      assert.deepStrictEqual(claimed.map(({ attempt, cycle }) => [attempt, cycle]), [[2, 1], [2, 1]])
      assert.deepStrictEqual(yield* held("kick", id), { deliveries: 0 })
    }))
})
