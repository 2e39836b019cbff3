/** The settlement of delivered results: fenced like any other, and each delivery gets its own answer. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import type { Settled } from "../../../../services/webhooks/Settlement.ts"
import { count, event, fixture, miscounted, now, resultOf, settle, take, webhook } from "../WebhookFixture.ts"

layer(Layer.fresh(fixture()))("settleDelivered", (it) => {
  it.effect("settles results whose claim is the row's, once, and returns exactly these", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks } = yield* take(Array.from({ length: 5 }, () => event(accountId)))
      const at = yield* now
      const idsOf = (all: ReadonlyArray<Pick<Settled, "result">>) =>
        all.map(({ result }) => result.task.deliveryId).sort()
      const [stale, ...own] = tasks.map((task) => resultOf(task, at))
      const fenced = { ...stale!, task: { ...stale!.task, claim: stale!.task.claim + 1_000n } }
      assert.deepStrictEqual(idsOf(yield* settle([fenced, ...own])), idsOf(own.map((result) => ({ result }))))
      assert.deepStrictEqual(yield* settle(own), [])
      assert.deepStrictEqual(idsOf(yield* settle([own[0]!, stale!])), [stale!.task.deliveryId])
      assert.strictEqual(yield* count("delivery_queue"), 0)
      assert.strictEqual(yield* count("attempts"), 0)
      assert.strictEqual(yield* count("deliveries", "status = 'delivered' and first_started_at is not null"), 5)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("updates each delivery of a batch on its page", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const { tasks } = yield* take(Array.from({ length: 500 }, () => event(accountId)))
      const { sql } = yield* Database
      const pages = sql<{ id: string; page: string }>`
        select id::text as id, (ctid::text::point)[0]::text as page from deliveries
        where webhook_id = ${id}::uuid order by id`
      const before = yield* pages
      const at = yield* now
      assert.lengthOf(yield* settle(tasks.map((task) => resultOf(task, at))), 500)
      assert.deepStrictEqual(yield* pages, before)
    }))

  it.effect("gives each delivery its own address and answer, whatever characters they have", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const answers = [
        ...[null, "", "ok", "ok", '{a,"b",NULL}', "NULL", "it's \\ \u{1f600}\n", "x".repeat(4_096)],
      ]
      const { tasks } = yield* take(answers.map(() => event(accountId)))
      const { sql } = yield* Database
      const at = yield* now
      const url = (i: number) => i === 3 ? null : `http://127.0.0.1:20999/${i % 3}?q={,}`
      const results = tasks.map((task, i) =>
        resultOf(task, at + i, { body: answers[i]!, url: url(i), status: 200 + i })
      )
      assert.lengthOf(yield* settle([...results].reverse()), answers.length)
      const rows = yield* sql<Record<string, unknown>>`
        select endpoint_url, response_body, response_status, first_response_status as attempted,
          first_started_at as started_at
        from deliveries where webhook_id = ${id}::uuid order by id`
      assert.deepStrictEqual(
        rows,
        answers.map((body, i) => ({
          endpoint_url: url(i),
          response_body: body === "" ? null : body,
          response_status: 200 + i,
          attempted: 200 + i,
          started_at: new Date(at + i),
        })),
      )
    }))
})
