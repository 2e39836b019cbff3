import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Readiness } from "../../../../services/platform/observability/Readiness.ts"
import { tables } from "../../../../src/Migrations.ts"
import { TestBus } from "../../../support/TestBus.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const closed = Redacted.make("nats://127.0.0.1:1")
const looking = (url: Redacted.Redacted, database?: Layer.Layer<Database, unknown>) =>
  Effect.gen(function* () {
    const own = database ?? Layer.succeed(Database, yield* Database)
    const context = yield* Layer.build(Readiness.layer(tables).pipe(Layer.provide([own, Bus.layer({ url })])))
    return Context.get(context, Readiness).look
  })
/** Checks until the broker was seen: its connection takes a moment. */
const settled = (look: Readiness["Service"]["look"], status: string) =>
  Effect.repeat(look, { until: (seen) => seen.status === status, schedule: Schedule.spaced("20 millis") })

layer(Layer.fresh(Layer.merge(TestDatabase.layer, TestBus.layer)), { excludeTestServices: true })("Readiness", (it) => {
  it.effect("the program is ready with database, tables and broker, and not while a table is missing", () =>
    Effect.gen(function* () {
      const look = yield* looking((yield* TestBus).url)
      const ok = { database: "ok", schema: "ok", event_bus: "ok" } as const
      assert.deepStrictEqual(yield* settled(look, "ready"), { status: "ready", checks: ok })
      const { owner } = yield* Database
      for (const table of ["webhooks", "deliveries", "jobs"]) {
        yield* owner`alter table ${owner(table)} rename to elsewhere`
        assert.deepStrictEqual(yield* look, { status: "not_ready", checks: { ...ok, schema: "fail" } }, table)
        yield* owner`alter table elsewhere rename to ${owner(table)}`
        assert.strictEqual((yield* look).status, "ready")
      }
    }))

  it.effect("the program is degraded without a broker, and commands succeed", () =>
    Effect.gen(function* () {
      const look = yield* looking(closed)
      const checks = { database: "ok", schema: "ok", event_bus: "fail" } as const
      assert.deepStrictEqual(yield* look, { status: "degraded", checks })
    }))

  it.effect("the program is not ready without a database, and answers in time", () =>
    Effect.gen(function* () {
      const { name, ownerUrl, url } = yield* TestDatabase
      const gone = (address: Redacted.Redacted) => Redacted.make(Redacted.value(address).replace(name, `${name}_gone`))
      const { owner } = yield* Database
      yield* owner.unsafe(`create database ${name}_gone template template0`)
      const look = yield* looking(
        (yield* TestBus).url,
        Database.layer({ url: gone(url), ownerUrl: gone(ownerUrl), maxConnections: 1 }),
      )
      assert.strictEqual((yield* look).checks.schema, "fail")
      yield* owner.unsafe(`drop database ${name}_gone with (force)`)
      const started = performance.now()
      const seen = yield* look
      assert.deepStrictEqual([seen.status, seen.checks.database, seen.checks.schema], ["not_ready", "fail", "fail"])
      assert.isBelow(performance.now() - started, 10_000)
    }))
})
