import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { prune } from "../../../../services/platform/database/Prune.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** A table of so many rows, aged by their number; no primary key, since none is needed. */
const tableOf = Effect.fnUntraced(function* (table: string, rows: number) {
  const { owner } = yield* Database
  yield* owner`create table ${owner(table)} (nth integer not null, kept boolean not null default false)`
  yield* owner`create index on ${owner(table)} (nth)`
  yield* owner`insert into ${owner(table)} (nth) select generate_series(1, ${rows})`
  yield* owner`grant all on ${owner(table)} to public`
})

const left = (table: string) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.map(
      sql<{ nth: number }>`select nth from ${sql(table)} order by nth`,
      (rows) => rows.map(({ nth }) => nth),
    ))

layer(TestDatabase.layer)("prune", (it) => {
  for (const old of [0, 9, 10, 25]) {
    it.effect(`deletes ${old} old rows in batches of ten and counts them; others stay`, () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        const table = `aged_${old}`
        yield* tableOf(table, 30)
        yield* owner`create table ${owner(`${table}_batches`)} (n integer)`
        yield* owner.unsafe(`
          create function ${table}_noted() returns trigger security definer language plpgsql as $$
            begin insert into ${table}_batches select count(*) from gone; return null; end $$`)
        yield* owner.unsafe(`
          create trigger noted after delete on ${table} referencing old table as gone
            for each statement execute function ${table}_noted()`)
        assert.strictEqual(yield* prune(sql, { table, where: sql`nth <= ${old}`, order: "nth", batch: 10 }), old)
        assert.deepStrictEqual(yield* left(table), Array.from({ length: 30 - old }, (_, i) => old + 1 + i))
        const batches = yield* owner<{ n: number }>`select n from ${owner(`${table}_batches`)}`
        // The last one is not full: so it is known to be the last.
        const full = Array.from({ length: Math.floor(old / 10) }, () => 10)
        assert.deepStrictEqual(batches.map(({ n }) => n), [...full, old % 10])
      }))
  }

  it.effect("leaves a row that a transaction has locked to the next call, without waiting", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* tableOf("locked", 5)
      const pruned = prune(sql, { table: "locked", where: sql`nth <= 4 and not kept`, order: "nth", batch: 10 })
      const [locked, done] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* owner`update locked set kept = true where nth = 2`.pipe(
        Effect.andThen(Deferred.succeed(locked, undefined)),
        Effect.andThen(Deferred.await(done)),
        Effect.andThen(owner`update locked set kept = false where nth = 2`),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(locked)
      assert.strictEqual(yield* pruned, 3)
      assert.deepStrictEqual(yield* left("locked"), [2, 5])
      yield* Deferred.succeed(done, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual(yield* pruned, 1)
      assert.deepStrictEqual(yield* left("locked"), [5])
    }))

  it.effect("several at once delete each row once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* tableOf("shared", 2_000)
      const pruned = prune(sql, { table: "shared", where: sql`nth <= 1900`, order: "nth", batch: 50 })
      const counts = yield* Effect.all([pruned, pruned, pruned, pruned], { concurrency: "unbounded" })
      // Where all rows that are left are another's, each of them stops; the rows are then gone.
      assert.strictEqual(counts.reduce((sum, n) => sum + n, 0) + (yield* pruned), 1_900)
      assert.lengthOf(yield* left("shared"), 100)
    }))

  it.effect("reads the rows that go and no others, also by a generic plan without statistics", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* tableOf("grown", 20_000)
      const read = yield* Effect.gen(function* () {
        yield* sql`set local plan_cache_mode = force_generic_plan`
        assert.strictEqual(yield* prune(sql, { table: "grown", where: sql`nth <= 12`, order: "nth", batch: 5 }), 12)
        const [row] = yield* sql<{ n: number }>`
          select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as n from pg_stat_xact_user_tables
          where relname = 'grown'`
        return row!.n
      }).pipe(sql.withTransaction)
      assert.isAtMost(read, 100)
    }))
})
