import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { WebhookId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { count, event, failed, fixture, miscounted, now, resultOf, settle, take, webhook } from "./WebhookFixture.ts"

const totals = Effect.flatMap(Database, ({ sql }) =>
  sql<{ webhook_id: WebhookId; status: string; n: number }>`
    select webhook_id, status, sum(n)::int as n from delivery_counts group by 1, 2 having sum(n) <> 0 order by 1, 2`)

layer(Layer.fresh(fixture()))("CountCompaction", (it) => {
  it.effect("leaves one row per webhook, day and status, and all totals unchanged", () =>
    Effect.gen(function* () {
      const { compact } = yield* CountCompaction
      const hooks = [yield* webhook(), yield* webhook()]
      for (const hook of [...hooks, ...hooks, ...hooks]) {
        const { tasks } = yield* take(Array.from({ length: 4 }, () => event(hook.accountId)))
        const at = yield* now
        yield* settle([resultOf(tasks[0]!, at), failed(tasks[1]!, at)])
      }
      const before = yield* totals
      assert.isAbove(yield* count("delivery_counts"), 12)
      assert.isFalse(yield* compact)
      assert.deepStrictEqual(yield* totals, before)
      assert.strictEqual(yield* count("delivery_counts", "folded"), 6)
      assert.strictEqual(yield* count("delivery_counts"), 6)
      assert.isFalse(yield* compact)
      assert.deepStrictEqual(yield* totals, before)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("leaves no row for counts that sum to zero, and works in batches", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { compact } = yield* CountCompaction
      yield* sql`delete from delivery_counts`
      yield* sql`insert into delivery_counts (webhook_id, day, status, n)
        select ${crypto.randomUUID()}::uuid, '2026-03-10', 'pending', case i % 2 when 0 then 1 else -1 end
        from generate_series(1, 20000) i`
      assert.isTrue(yield* compact)
      assert.isFalse(yield* compact)
      assert.strictEqual(yield* count("delivery_counts"), 0)
    }))

  it.effect("loses no count while deliveries are settled", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { compact } = yield* CountCompaction
      yield* sql`delete from delivery_counts`
      yield* sql`delete from deliveries`
      const hook = yield* webhook()
      const writes = Effect.gen(function* () {
        const { tasks } = yield* take([event(hook.accountId), event(hook.accountId)])
        yield* settle([resultOf(tasks[0]!, yield* now)])
      })
      yield* Effect.all([
        Effect.repeat(writes, { times: 25 }),
        Effect.repeat(writes, { times: 25 }),
        Effect.repeat(compact, { times: 50 }),
        Effect.repeat(compact, { times: 50 }),
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual((yield* totals).map(({ n, status }) => [status, n]), [["delivered", 52], ["pending", 52]])
    }))
})
