import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Fiber } from "effect"
import { Reactivity } from "effect/reactivity"
import { TestClock } from "effect/testing"
import {
  type Backfill,
  bite,
  isFilled,
  progressOf,
  progressText,
} from "../../../../services/platform/database/Backfills.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../../services/platform/Failpoints.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const pace = { floor: 40, ceiling: 40 }

/** A table of so many rows, each of which counts how often it was filled. */
const tableOf = Effect.fnUntraced(function* (table: string, rows: number, more: Partial<Backfill> = {}) {
  const { owner } = yield* Database
  yield* owner`
    create table ${
    owner(table)
  } (id integer primary key, filled boolean not null default false, n integer not null default 0)`
  yield* owner`insert into ${owner(table)} (id) select generate_series(1, ${rows})`
  yield* owner`grant all on ${owner(table)} to public`
  const fill = `update ${table} set filled = true, n = n + 1 from bite where id = bite.key`
  return { name: `${table}_filled`, table, key: "id", left: "not filled", fill, ...more } satisfies Backfill
})

/** How many rows were filled so often. */
const timesFilled = Effect.fnUntraced(function* ({ table }: Backfill) {
  const { sql } = yield* Database
  const rows = yield* sql<{ n: number; rows: number }>`
    select n, count(*)::int as rows from ${sql(table)} group by n order by n`
  return rows.map(({ n, rows }) => [n, rows])
})

const progress = Effect.fnUntraced(function* ({ name }: Backfill) {
  const [found] = yield* progressOf((yield* Database).sql, name)
  return found!
})

/** Takes bites to the end, by the test's clock; gives the milliseconds that they took of it. */
const toTheEnd = Effect.fnUntraced(function* (backfill: Backfill, by = pace) {
  const { sql } = yield* Database
  const began = yield* Clock.currentTimeMillis
  for (let wait = yield* bite(sql, backfill, by); wait !== null; wait = yield* bite(sql, backfill, by)) {
    yield* TestClock.adjust(wait)
  }
  return (yield* Clock.currentTimeMillis) - began
})

/** Waits until a statement with this text waits for a lock. */
const blocked = Effect.fnUntraced(function* (text: string) {
  const { sql } = yield* Database
  const waiting = sql`
    select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%${text}%`} and datname = current_database()`
  yield* Effect.repeat(waiting, { until: ({ length }) => length > 0 })
})

const diesAt = (point: FaultPoint) =>
  Effect.provideService(Failpoints, {
    hit: (here) => {
      if (here === point) throw new Error("killed")
    },
  })

const realClock = Effect.provideService(Clock.Clock, Context.get(Context.empty(), Clock.Clock))

layer(TestDatabase.layer)("a backfill", (it) => {
  it.effect("killed inside a bite leaves what was before it, between two what was after it, and goes on from there", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("killed", 25)
      assert.strictEqual(yield* bite(sql, backfill, pace), 250)
      yield* TestClock.adjust(250)
      for (
        const [point, rows] of [["backfill.written", 10], ["backfill.committed", 20], ["backfill.written", 20]] as const
      ) {
        assert.strictEqual((yield* Effect.exit(diesAt(point)(bite(sql, backfill, pace))))._tag, "Failure")
        assert.deepStrictEqual(yield* timesFilled(backfill), [[0, 25 - rows], [1, rows]], point)
        const { changed, read } = yield* progress(backfill)
        assert.deepStrictEqual([changed, read], [rows, rows], point)
        yield* TestClock.adjust(250)
      }
      yield* toTheEnd(backfill)
      assert.deepStrictEqual(yield* timesFilled(backfill), [[1, 25]])
      const { changed, done, read } = yield* progress(backfill)
      assert.deepStrictEqual({ changed, done, read }, { changed: 25, done: true, read: 25 })
      assert.isNull(yield* bite(sql, backfill, pace))
    }))

  it.effect("holds its rate, over all processes that take bites at once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("shared", 200)
      const process = bite(sql, backfill, pace)
      let elapsed = 0
      for (;;) {
        const waits = yield* Effect.all([process, process, process], { concurrency: "unbounded" })
        const { changed } = yield* progress(backfill)
        // A bite of a quarter of a second, and forty rows a second since.
        assert.isAtMost(changed, 10 + elapsed / 25, `after ${elapsed} ms`)
        if (waits.includes(null)) break
        yield* TestClock.adjust(50)
        elapsed += 50
      }
      assert.strictEqual(elapsed, 5_000)
      assert.deepStrictEqual(yield* timesFilled(backfill), [[1, 200]])
    }))

  it.effect("does not wait where no row needs it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("filled", 200)
      yield* sql`update filled set filled = true where id > 5`
      assert.strictEqual(yield* toTheEnd(backfill), 125)
      assert.deepStrictEqual(yield* timesFilled(backfill), [[0, 195], [1, 5]])
    }))

  it.effect("takes more rows while bites are quick, never more than the ceiling", () =>
    Effect.gen(function* () {
      const backfill = yield* tableOf("quick", 400)
      const took = yield* toTheEnd(backfill, { floor: 40, ceiling: 80 })
      assert.strictEqual((yield* progress(backfill)).rate, 80)
      assert.isBelow(took, 7_500)
      assert.isAtLeast(took, 5_000)
    }))

  it.effect("takes fewer where bites are slow, never less than the floor", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const slow = yield* tableOf("slow", 500, {
        fill: "update slow set filled = true from bite cross join (select pg_sleep(0.3)) s where id = bite.key",
      })
      yield* sql`
        insert into backfills (name, table_name, rate, next_at, begun_at) values (${slow.name}, 'slow', 1000, now(), now())`
      const rates: Array<number> = []
      for (let n = 0; n < 3; n++) {
        const wait = yield* bite(sql, slow, { floor: 300, ceiling: 1_000 })
        // As long as the bite, so that half of the time is left to others.
        assert.isAtLeast(wait!, 250)
        rates.push((yield* progress(slow)).rate)
        yield* sql`update backfills set next_at = now() where name = ${slow.name}`
      }
      assert.deepStrictEqual(rates, [500, 300, 300])
    }).pipe(realClock), 30_000)

  it.effect("asks a row again that another transaction holds, once it has it", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const backfill = yield* tableOf("held", 5)
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* owner`update held set filled = true, n = 7 where id = 2`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      const biting = yield* Effect.forkChild(bite(sql, backfill, pace))
      yield* blocked("walked")
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      assert.isNull(yield* Fiber.join(biting))
      assert.deepStrictEqual(yield* timesFilled(backfill), [[1, 4], [7, 1]])
    }))

  it.effect("that cannot have a lock gives up its bite, takes smaller ones, and ends", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const backfill = yield* tableOf("locked", 30)
      const { url } = yield* TestDatabase
      const hurried = yield* PgClient.make({ url, maxConnections: 1, startupParameters: { lock_timeout: "100ms" } })
        .pipe(Effect.provide(Reactivity.layer))
      const wide = { floor: 8, ceiling: 40 }
      yield* bite(hurried, backfill, wide)
      yield* owner`update backfills set rate = 40, next_at = 'epoch' where name = ${backfill.name}`
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* owner`update locked set n = 0 where id = 9`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      assert.strictEqual((yield* Effect.result(bite(hurried, backfill, wide)))._tag, "Failure")
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      const { changed, rate } = yield* progress(backfill)
      assert.deepStrictEqual([changed, rate], [2, 20])
      yield* toTheEnd(backfill, wide)
      assert.deepStrictEqual(yield* timesFilled(backfill), [[1, 30]])
    }))

  it.effect("begins anew where an older program has written rows behind it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("late", 15)
      assert.isFalse(yield* isFilled(sql, backfill), "not begun")
      yield* bite(sql, backfill, pace)
      assert.isFalse(yield* isFilled(sql, backfill), "begun")
      yield* TestClock.adjust(1_000)
      yield* toTheEnd(backfill)
      assert.isTrue(yield* isFilled(sql, backfill))
      yield* sql`insert into late (id) values (0)`
      assert.isFalse(yield* isFilled(sql, backfill))
      assert.strictEqual(
        progressText(yield* progress(backfill)),
        "late_filled has read 0 of about 0 rows and changed 15",
      )
      yield* TestClock.adjust(1_000)
      yield* toTheEnd(backfill)
      assert.deepStrictEqual(yield* timesFilled(backfill), [[1, 16]])
      assert.isTrue(yield* isFilled(sql, backfill))
      const { done, read } = yield* progress(backfill)
      assert.deepStrictEqual([done, read], [true, 16])
    }))

  it.effect("is not taken for filled by a look that began before a bite and ended after it", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const backfill = yield* tableOf("fenced", 15)
      assert.isFalse(yield* isFilled(sql, backfill))
      yield* sql`update fenced set filled = true`
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const biting = yield* bite(sql, backfill, pace).pipe(
        Effect.tap(() => Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        sql.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      // Finds no row that is left, and waits for the bite. Meanwhile an older program writes one behind it.
      const look = yield* Effect.forkChild(isFilled(sql, backfill))
      yield* blocked("backfills")
      yield* owner`insert into fenced (id) values (0)`
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(biting)
      assert.isFalse(yield* Fiber.join(look))
      const { done, read } = yield* progress(backfill)
      assert.deepStrictEqual([done, read], [false, 10])
      yield* TestClock.adjust(1_000)
      yield* toTheEnd(backfill)
      assert.isFalse(yield* isFilled(sql, backfill), "begun anew")
      yield* TestClock.adjust(1_000)
      yield* toTheEnd(backfill)
      assert.isTrue(yield* isFilled(sql, backfill))
      assert.deepStrictEqual(yield* timesFilled(backfill), [[0, 15], [1, 1]])
    }))

  it.effect("is not taken for filled by a look during which another one began it anew", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const backfill = yield* tableOf("anew", 5)
      yield* toTheEnd(backfill)
      const slowLook = { ...backfill, left: "not filled or pg_advisory_xact_lock_shared(17)::text is null" }
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* owner`select pg_advisory_xact_lock(17)`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      const look = yield* Effect.forkChild(isFilled(sql, slowLook))
      yield* blocked("pg_advisory_xact_lock_shared")
      yield* sql`insert into anew (id) values (0)`
      assert.isFalse(yield* isFilled(sql, backfill))
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      assert.isFalse(yield* Fiber.join(look))
      assert.isFalse((yield* progress(backfill)).done)
    }))

  it.effect("is looked at in spans, none of which takes longer than a statement may", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { url } = yield* TestDatabase
      const hurried = yield* PgClient.make({
        url,
        maxConnections: 1,
        startupParameters: { statement_timeout: "500ms" },
      })
        .pipe(Effect.provide(Reactivity.layer))
      // Reading it takes two seconds. A look that raised its own limit would find rows.
      const slow = "(not filled or pg_sleep(0.001)::text is null or current_setting('statement_timeout') <> '500ms')"
      const backfill = yield* tableOf("large", 2_000, { left: slow })
      yield* sql`update large set filled = true`
      assert.strictEqual(
        (yield* Effect.flip(hurried`select from large where ${hurried.literal(slow)}`)).reason._tag,
        "StatementTimeoutError",
      )
      assert.isTrue(yield* isFilled(hurried, backfill))
      yield* sql`update large set filled = false where id = 2000`
      assert.isFalse(yield* isFilled(hurried, backfill))
    }).pipe(realClock), 30_000)

  it.effect("copies by an INSERT what rows are once it has them, not what they were before", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const backfill = yield* tableOf("source", 5, {
        left: "not exists (select from copies where copies.id = source.id)",
        fill: "insert into copies (id, n) select id, n from source join bite on id = bite.key",
      })
      yield* owner`create table copies (id integer primary key, n integer not null)`
      yield* owner`grant all on copies to public`
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* owner`update source set n = 7 where id = 2`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      const biting = yield* Effect.forkChild(bite(sql, backfill, pace))
      yield* blocked("walked")
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      assert.isNull(yield* Fiber.join(biting))
      assert.deepStrictEqual(yield* sql`select id, n from copies where n > 0 or id = 1 order by id`, [{ id: 1, n: 0 }, {
        id: 2,
        n: 7,
      }])
      assert.strictEqual((yield* progress(backfill)).changed, 5)
    }))

  it.effect("keeps why its last bite failed, and when, until one succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("wrong", 5, {
        fill: "update wrong set filled = true, n = 7 / (id - 3) from bite where id = bite.key",
      })
      yield* TestClock.setTime(Date.UTC(2026, 1, 3))
      assert.strictEqual((yield* Effect.result(bite(sql, backfill, pace)))._tag, "Failure")
      assert.match(
        progressText(yield* progress(backfill)),
        /^wrong_filled has read 0 of .* and changed 0; its last bite failed at 2026-02-03T00:00:00.000Z, the next one comes at 2026-02-03T00:00:01.000Z: 22012 division by zero$/,
      )
      yield* sql`delete from wrong where id = 3`
      yield* TestClock.adjust(1_000)
      assert.isNull(yield* bite(sql, backfill, pace))
      const { failedAt, lastError } = yield* progress(backfill)
      assert.deepStrictEqual([failedAt, lastError], [null, null])
    }))

  it.effect("whose bites fail takes them later and later, up to a minute, and at its rate once one succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("stuck", 30, {
        fill: "update stuck set filled = true, n = 7 / (1 - n) from bite where id = bite.key",
      })
      yield* sql`update stuck set n = 1 where id = 3`
      const failsAfter = Effect.fnUntraced(function* () {
        const began = yield* Clock.currentTimeMillis
        for (;;) {
          const wait = yield* Effect.catch(bite(sql, backfill, pace), () => Effect.succeed("failed" as const))
          if (wait === "failed") return (yield* Clock.currentTimeMillis) - began
          yield* TestClock.adjust(wait!)
        }
      })
      const waits: Array<number> = []
      for (let n = 0; n < 9; n++) waits.push(yield* failsAfter())
      assert.deepStrictEqual(waits, [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
      yield* sql`update stuck set n = 0 where id = 3`
      yield* TestClock.adjust(60_000)
      assert.strictEqual(yield* bite(sql, backfill, pace), 250, "ten rows at forty a second")
      yield* sql`update stuck set n = 1 where id = 12`
      yield* failsAfter()
      assert.strictEqual(yield* bite(sql, backfill, pace), 1_000, "begun anew")
    }))

  it.effect("of a table without such rows, as a new installation's, counts as finished at once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const backfill = yield* tableOf("fresh", 0)
      assert.isTrue(yield* isFilled(sql, backfill))
      assert.isTrue((yield* progress(backfill)).done)
    }))
})
