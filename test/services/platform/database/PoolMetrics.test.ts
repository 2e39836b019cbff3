/** The metrics of a pool while its only connection is taken. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Metric } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { until } from "../../../e2e/support/Until.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** Values of the metrics of the pool `sql`; of the histogram, its count and sum. */
const shown = Effect.map(Metric.snapshot, (all) => {
  const of = (name: string, state?: string) =>
    all.find(({ attributes, id }) =>
      id === `bailiwick_database_${name}` && attributes?.["pool"] === "sql" && attributes["state"] === state
    )
  const value = (metric: ReturnType<typeof of>) => metric?.type === "Gauge" ? Number(metric.state.value) : null
  const waits = of("wait_seconds")
  return {
    connections: value(of("connections")),
    waiting: value(of("transactions", "waiting")),
    underWay: value(of("transactions", "under_way")),
    count: waits?.type === "Histogram" ? waits.state.count : null,
    longest: waits?.type === "Histogram" ? waits.state.max : null,
  }
})

layer(TestDatabase.layer, { excludeTestServices: true, timeout: "2 minutes" })("PoolMetrics", (it) => {
  it.effect("show what waits for a connection, what has one, and nothing of savepoints", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      yield* Effect.gen(function* () {
        const built = yield* Layer.build(Database.layer({ url, ownerUrl: null, maxConnections: 1 }))
        const { sql } = Context.get(built, Database)
        assert.deepInclude(yield* shown, { connections: 0, waiting: 0, underWay: 0 })
        const held = yield* Deferred.make<void>()
        const nested = sql`select 1`.pipe(sql.withTransaction, Effect.andThen(Deferred.await(held)))
        const first = yield* Effect.forkChild(sql.withTransaction(nested))
        yield* until("the first", shown, ({ underWay }) => underWay === 1)
        const second = yield* Effect.forkChild(sql.withTransaction(sql`select 2`))
        const given = yield* Effect.forkChild(sql.withTransaction(sql`select 3`))
        yield* until("both that wait", shown, ({ waiting }) => waiting === 2)
        yield* Fiber.interrupt(given)
        assert.deepInclude(yield* shown, { connections: 1, waiting: 1, underWay: 1, count: 1 })
        yield* Effect.sleep("60 millis")
        yield* Deferred.succeed(held, undefined)
        yield* Fiber.joinAll([first, second])
        const after = yield* shown
        assert.deepInclude(after, { connections: 1, waiting: 0, underWay: 0, count: 2 })
        assert.isAtLeast(after.longest!, 0.06)
        yield* Effect.flip(sql.withTransaction(Effect.fail("no")))
        assert.deepInclude(yield* shown, { waiting: 0, underWay: 0, count: 3 })
      }).pipe(
        Effect.scoped,
        Effect.andThen(until("no connection", shown, ({ connections }) => connections === 0)),
        Effect.provideService(Metric.MetricRegistry, new Map()),
      )
    }))
})
