import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { Database } from "../../services/platform/database/Database.ts"
import { databaseChecks } from "../../src/doctor/DatabaseChecks.ts"
import { lineOf } from "../../src/doctor/Finding.ts"
import { runSteps } from "../../src/MigrationSteps.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

const statements = [
  "create table boats (id integer primary key, owner text)",
  "insert into boats (id, owner) select n, 'a' from generate_series(1, 500) n",
  "alter table boats add column length_cm integer",
  "create index concurrently if not exists boats_owner on boats (owner)",
  "alter table boats add constraint boats_length check (length_cm > 0) not valid",
  "alter table boats validate constraint boats_length",
  "insert into boats (id, owner, length_cm) select max(id) + 1, 'last', 600 from boats",
  "create unique index concurrently if not exists boats_pair on boats (owner, id)",
]
const migration = { id: 9_001, name: "boats", statements }

/** Everything of the table, its rows included. */
const shape = (sql: PgClient.PgClient) =>
  sql`
    select (select json_agg(json_build_array(attname, atttypid::regtype, attnotnull) order by attnum)
        from pg_attribute where attrelid = 'boats'::regclass and attnum > 0) as columns,
      (select json_agg(json_build_array(pg_get_indexdef(indexrelid), indisvalid) order by indexrelid::regclass::text)
        from pg_index where indrelid = 'boats'::regclass) as indexes,
      (select json_agg(json_build_array(conname, pg_get_constraintdef(oid), convalidated) order by conname)
        from pg_constraint where conrelid = 'boats'::regclass) as constraints,
      (select json_build_array(count(*), sum(id), max(length_cm)) from boats) as rows,
      (select count(*)::int from stepped_migrations where migration_id = 9001) as steps`

const dropped = (owner: PgClient.PgClient) =>
  Effect.gen(function* () {
    yield* owner`drop table if exists boats`
    yield* owner`delete from stepped_migrations where migration_id = 9001`
    yield* owner`delete from effect_sql_migrations where migration_id = 9001`
  })

const ended = (statement: string) =>
  `do $$ begin execute '${statement.replaceAll("'", "''")}'; perform pg_terminate_backend(pg_backend_pid()); end $$`

/** A second connection, which ends with the scope. */
const another = Effect.flatMap(
  TestDatabase,
  ({ ownerUrl }) => PgClient.make({ url: ownerUrl, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer)),
)

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("a migration in steps", (it) => {
  it.effect("killed within each statement and run again ends in the schema of a run that was never killed", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* dropped(owner)
      yield* runSteps(owner, migration)
      const whole = yield* shape(owner)
      for (const [at, statement] of statements.entries()) {
        if (/concurrently/.test(statement)) continue
        yield* dropped(owner)
        const cut = { ...migration, statements: statements.with(at, ended(statement)) }
        assert.strictEqual((yield* Effect.result(runSteps(owner, cut)))._tag, "Failure", statement)
        assert.isTrue(Option.isSome(yield* runSteps(owner, migration)), statement)
        assert.deepStrictEqual(yield* shape(owner), whole, statement)
      }
      assert.isTrue(Option.isNone(yield* runSteps(owner, migration)))
    }))

  it.effect("killed while it builds an index leaves an invalid one, and the next run builds it anew", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* dropped(owner)
      yield* runSteps(owner, migration)
      const whole = yield* shape(owner)
      const valid = Effect.map(
        sql<{ valid: boolean }>`select indisvalid as valid from pg_index where indexrelid = to_regclass('boats_owner')`,
        ([row]) => row?.valid,
      )
      yield* dropped(owner)
      yield* runSteps(owner, { ...migration, name: "begun", statements: statements.slice(0, 3) })
      yield* owner`delete from effect_sql_migrations where migration_id = 9001`
      // An open transaction that has written the table holds the index up between its two passes.
      const writer = yield* another
      const written = yield* Deferred.make<void>()
      const over = yield* Deferred.make<void>()
      const writing = yield* Effect.forkChild(writer.withTransaction(
        writer`update boats set owner = 'b' where id = 1`.pipe(
          Effect.andThen(Deferred.succeed(written, undefined)),
          Effect.andThen(Deferred.await(over)),
        ),
      ))
      yield* Deferred.await(written)
      const running = yield* Effect.forkChild(Effect.result(runSteps(owner, migration)))
      while ((yield* valid) !== false) yield* Effect.sleep("20 millis")
      yield* owner`select pg_terminate_backend(pid) from pg_stat_activity where query like 'create index concurrently%'`
      assert.strictEqual((yield* Fiber.join(running))._tag, "Failure")
      assert.isFalse(yield* valid)
      const indexes = Effect.map(databaseChecks, (found) => lineOf(found.find(({ what }) => what === "indexes")!))
      assert.include(yield* indexes, "warn indexes       boats_owner cannot be used, or not yet")
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(writing)
      yield* owner`update boats set owner = 'a' where id = 1`
      yield* runSteps(owner, migration)
      assert.deepStrictEqual(yield* shape(owner), whole)
      assert.match(yield* indexes, /^ok {3}indexes/)
    }))

  it.effect("run by three processes at once runs each step once", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* dropped(owner)
      yield* runSteps(owner, migration)
      const whole = yield* shape(owner)
      yield* dropped(owner)
      const runs = [owner, yield* another, yield* another].map((by) => runSteps(by, migration))
      const found = yield* Effect.all(runs, { concurrency: "unbounded" })
      assert.strictEqual(found.filter(Option.isSome).length, 1)
      assert.deepStrictEqual(yield* shape(owner), whole)
    }))

  it.effect("gives a lock up that is not free, so that writes go on, and has it later", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* dropped(owner)
      yield* owner`create table boats (id integer primary key)`
      const { ownerUrl } = yield* TestDatabase
      const hurried = yield* PgClient.make({
        url: ownerUrl,
        maxConnections: 1,
        startupParameters: { lock_timeout: "200ms" },
      }).pipe(Effect.provide(Reactivity.layer))
      const reader = yield* another
      const reading = yield* Deferred.make<void>()
      const over = yield* Deferred.make<void>()
      const read = yield* Effect.forkChild(reader.withTransaction(
        reader`select from boats`.pipe(
          Effect.andThen(Deferred.succeed(reading, undefined)),
          Effect.andThen(Deferred.await(over)),
        ),
      ))
      yield* Deferred.await(reading)
      const running = yield* Effect.forkChild(
        runSteps(hurried, { ...migration, statements: ["alter table boats add column owner text"] }),
      )
      // Each write would wait for the reader, behind the ALTER TABLE, if that kept its place in the queue.
      for (let id = 1; id <= 10; id++) {
        yield* owner`insert into boats (id) values (${id})`
        yield* Effect.sleep("100 millis")
      }
      assert.isUndefined(running.pollUnsafe())
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(read)
      assert.isTrue(Option.isSome(yield* Fiber.join(running)))
    }))
})
