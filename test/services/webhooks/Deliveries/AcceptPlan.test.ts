/** The cost of accepting a batch grows with the number of its events, not with their square. */
import type { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DeliveryId, EventId, type WebhookId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Ids } from "../../../../services/platform/Ids.ts"
import { insertEvents } from "../../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { count, event, fixture, now, webhook } from "../WebhookFixture.ts"

interface Node {
  readonly "Node Type": string
  readonly "Rows Removed by Join Filter"?: number
  readonly Plans?: ReadonlyArray<Node>
}

/** Runs statements under EXPLAIN ANALYZE, which also executes them, and keeps their plans. */
const explaining = (sql: PgClient.PgClient) => {
  const plans: Array<Node> = []
  const run = (strings: TemplateStringsArray, ...values: ReadonlyArray<string>) => {
    // The parts of the statement stay as they are.
    if (!/^\s*with /.test(strings[0]!)) return sql(strings, ...values)
    const texts = [`explain (analyze, timing off, format json) ${strings[0]}`, ...strings.slice(1)]
    return Effect.map(
      sql<{ "QUERY PLAN": ReadonlyArray<{ readonly Plan: Node }> }>(Object.assign(texts, { raw: texts }), ...values),
      (rows) => {
        plans.push(...rows.flatMap((row) => row["QUERY PLAN"].map(({ Plan }) => Plan)))
        return [{ fresh: [], claim: 0n, current: [] }]
      },
    )
  }
  return { plans, sql: run as unknown as PgClient.PgClient }
}

const compared = (node: Node): number =>
  (node["Rows Removed by Join Filter"] ?? 0) + (node.Plans ?? []).reduce((sum, plan) => sum + compared(plan), 0)

layer(Layer.fresh(fixture()))("Accepting a batch", (it) => {
  it.effect("joins its events without comparing each one with all others", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { accountId, id: webhookId } = yield* webhook()
      const { batch } = yield* Ids
      const explained = explaining(sql)
      // After several runs PostgreSQL uses a generic plan; with missed events the statement is another one.
      for (const missedBy of [...Array(7).fill([]), ...Array(7).fill([webhookId])] as ReadonlyArray<Array<WebhookId>>) {
        const [ids, deliveryIds] = [yield* batch(500), yield* batch(500)]
        const events = ids.map((id, i) => ({
          ...event(accountId),
          id: EventId.make(id),
          missedBy,
          deliveries: [{ id: DeliveryId.make(deliveryIds[i]!), webhookId, claimed: true }],
        }))
        const at = new Date(yield* now)
        yield* insertEvents(explained.sql, events, { now: at, leaseUntil: at })
      }
      assert.deepStrictEqual([yield* count("deliveries"), yield* count("missed_events")], [7_000, 3_500])
      assert.deepStrictEqual(explained.plans.map(compared), Array(14).fill(0))
    }))
})
