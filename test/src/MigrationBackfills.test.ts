/** The example of docs/upgrading.md, followed literally: its backfill, and the migrations of its table of releases. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import type { Backfill } from "../../services/platform/database/Backfills.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { BackfillList } from "../../src/BackfillList.ts"
import { databaseChecks } from "../../src/doctor/DatabaseChecks.ts"
import { lineOf } from "../../src/doctor/Finding.ts"
import { fillNow } from "../../src/MigrationBackfills.ts"
import { apply, type Migration } from "../../src/Migrations.ts"
import { backfillTurn } from "../../src/workers/BackfillWorker.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

const page = readFileSync("docs/upgrading.md", "utf8")

/** The list of the page's example. */
const [, listed] = /```ts\nexport const backfills: ReadonlyArray<Backfill> = (\[[\s\S]*?\])\n```/.exec(page)!
const backfills = new Function(`return ${listed}`)() as ReadonlyArray<Backfill>

/** The statements on boats of a release in the page's table. */
const statementsOf = (release: string) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${release} |`))!
  return [...row.split("|")[2]!.matchAll(/`([^`]+)`/g)].map(([, text]) => text!).filter((text) => /boats/.test(text))
}

const expand: Migration = [9_101, "expand", statementsOf("1, expand")]
const both: Migration = [9_102, "boats_owned", statementsOf("2, both"), backfills]
const pace = { floor: 400, ceiling: 400 }

/** Boats as the release before 1 has them, on a schema without either migration. */
const boats = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  yield* owner`drop table if exists boats`
  for (const table of ["stepped_migrations", "effect_sql_migrations"]) {
    yield* owner`delete from ${owner(table)} where migration_id in (9101, 9102)`
  }
  yield* owner`delete from backfills`
  yield* owner`create table boats (id integer primary key, owner text not null)`
  yield* owner`insert into boats (id, owner) select n, gen_random_uuid() from generate_series(1, ${rows}) n`
  yield* owner`grant all on boats to public`
})

const finding = Effect.map(databaseChecks, (found) => lineOf(found.find(({ what }) => what === "backfills")!))

const ids = (applied: ReadonlyArray<readonly [number, string]>) => applied.map(([id]) => id)

const without = Effect.flatMap(Database, ({ owner }) =>
  Effect.map(
    owner<{ n: number }>`select count(*)::int as n from boats where owner_id is distinct from owner::uuid`,
    ([row]) => row!.n,
  ))

const turn = Effect.provideService(backfillTurn(pace), BackfillList, backfills)

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("a migration that needs a backfill", (it) => {
  it.effect("is refused in one line until processes have filled the rows, and those of an older program as well", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* boats(250)
      assert.strictEqual(yield* finding, "ok   backfills     none is unfinished")
      assert.deepStrictEqual(ids(yield* apply(owner, [expand])), [9_101])
      const refused = yield* Effect.flip(apply(owner, [expand, both]))
      assert.strictEqual(refused._tag, "Unfilled")
      assert.match(
        refused.message,
        /^migration 9102 boats_owned needs a backfill that is not finished, boats_owner_id has read 0 of .* until "[^"]+doctor" says .* "[^"]+migrate"/,
      )
      assert.notInclude(refused.message, "\n")
      assert.notInclude(refused.message, "a second", "the rate that a look has noted is nobody's")

      assert.isTrue(yield* turn)
      assert.strictEqual(yield* without, 150)
      assert.match(
        yield* finding,
        /^ok {3}backfills {5}boats_owner_id has read 100 of about \d+ rows and changed 100, 400/,
      )
      assert.match((yield* Effect.flip(apply(owner, [expand, both]))).message, /has read 100 of about/)
      yield* sql`update backfills set next_at = now() - interval '2 minutes'`
      assert.match(
        yield* finding,
        /^warn backfills .*; no bite for over a minute: start an instance with the role timers$/,
      )
      yield* Effect.repeat(turn, { while: (more) => more })
      assert.strictEqual(yield* without, 0)

      yield* owner`insert into boats (id, owner) values (0, gen_random_uuid())`
      assert.match((yield* Effect.flip(apply(owner, [expand, both]))).message, /has read 0 of about/)
      yield* Effect.repeat(turn, { while: (more) => more })
      assert.strictEqual(yield* finding, "ok   backfills     none is unfinished")
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both])), [9_102])
      assert.strictEqual(yield* without, 0)
      // Applied, it asks for nothing any more.
      yield* owner`update backfills set done_at = null`
      assert.deepStrictEqual(yield* apply(owner, [expand, both]), [])
    }))

  it.effect("has the rows filled by cli migrate, which tells how far it is, and counts a new table as filled", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* boats(250)
      const told: Array<string> = []
      const now = fillNow(pace, (text) => Effect.sync(() => void told.push(text)))
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both], now)), [9_101, 9_102])
      assert.strictEqual(yield* without, 0)
      assert.deepStrictEqual(told.map((text) => / has read (\d+) /.exec(text)![1]), ["100", "200"])

      yield* boats(0)
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both])), [9_101, 9_102])
      assert.strictEqual(yield* finding, "ok   backfills     none is unfinished")
    }))

  it.effect("is not filled for ever by a backfill that leaves rows: it says so after its second walk", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* boats(50)
      const lasting: Migration = [9_102, "boats_owned", statementsOf("2, both"), [{ ...backfills[0]!, left: "true" }]]
      const error = yield* Effect.flip(apply(owner, [expand, lasting], fillNow(pace, () => Effect.void)))
      assert.match(String(error.message), /walked the table 2 times and leaves rows that it does not change/)
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both], fillNow(pace, () => Effect.void))), [9_102])
    }))

  it.effect("says why bites fail, to doctor and to cli migrate, until one succeeds", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* boats(50)
      yield* apply(owner, [expand])
      yield* owner`update boats set owner = 'nobody' where id = 20`
      assert.isTrue(yield* turn)
      const why =
        'its last bite failed at [-0-9T:.]+Z, the next one comes at [-0-9T:.]+Z: 22P02 invalid input syntax for type uuid: "nobody"'
      const remedy = "put right what it names; where it is the time, lower BACKFILL_FLOOR"
      // The time of the next bite stays long ago, and a process is at it.
      yield* owner`update backfills set next_at = now() - interval '2 minutes'`
      assert.match(yield* finding, new RegExp(`^warn backfills +boats_owner_id has read 0 .*; ${why}: ${remedy}$`))
      yield* owner`update backfills set failed_at = now() - interval '2 minutes'`
      assert.match(
        yield* finding,
        new RegExp(`: ${remedy}; no bite for over a minute: start an instance with the role timers$`),
      )
      const error = yield* Effect.flip(apply(owner, [expand, both], fillNow(pace, () => Effect.void)))
      assert.match(
        String(error.message),
        new RegExp(`^migration 9102 boats_owned needs a backfill that fails, .*; ${why}$`),
      )

      yield* owner`update boats set owner = gen_random_uuid() where id = 20`
      yield* Effect.repeat(turn, { while: (more) => more })
      assert.strictEqual(yield* finding, "ok   backfills     none is unfinished")
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both])), [9_102])
    }))

  it.effect("holds up no other backfill while its bites fail, and is tried again by itself", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* boats(50)
      yield* apply(owner, [expand])
      yield* owner`update boats set owner = 'nobody' where id = 20`
      yield* owner`drop table if exists harbours`
      yield* owner`create table harbours (id integer primary key, filled boolean not null default false)`
      yield* owner`insert into harbours (id) select generate_series(1, 150)`
      yield* owner`grant all on harbours to public`
      const behind: Backfill = {
        name: "harbours_filled",
        table: "harbours",
        key: "id",
        left: "not filled",
        fill: "update harbours set filled = true from bite where id = bite.key",
      }
      const both = Effect.provideService(backfillTurn(pace), BackfillList, [backfills[0]!, behind])
      const left = Effect.map(
        sql<{ n: number }>`select count(*)::int as n from harbours where not filled`,
        ([row]) => row!.n,
      )
      assert.isTrue(yield* both)
      assert.isTrue(yield* both)
      assert.strictEqual(yield* left, 0)
      assert.deepStrictEqual(yield* sql`select from boats where owner_id is not null`, [])
      assert.match(yield* finding, /^warn backfills +boats_owner_id .* the next one comes at .*22P02/)
      yield* owner`update boats set owner = gen_random_uuid() where id = 20`
      yield* Effect.repeat(both, { while: (more) => more })
      assert.strictEqual(yield* without, 0)
    }))

  it.effect("has its backfill looked at and filled also where it is an effect, after the migrations before it", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* boats(50)
      const sql = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`alter table boats alter owner_id set not null`)
      const effect: Migration = [9_102, "boats_owned", Effect.succeed(sql), backfills]
      const before: Migration = [
        9_101,
        "expand",
        Effect.succeed(
          Effect.flatMap(SqlClient.SqlClient, (sql) => sql`alter table boats add column owner_id uuid`),
        ),
      ]
      const refused = yield* Effect.flip(apply(owner, [before, effect]))
      assert.match(String(refused.message), /^migration 9102 boats_owned needs a backfill that is not finished/)
      assert.deepStrictEqual(ids(yield* apply(owner, [before, effect], fillNow(pace, () => Effect.void))), [9_102])
      assert.strictEqual(yield* without, 0)
      yield* owner`update backfills set done_at = null`
      assert.deepStrictEqual(yield* apply(owner, [before, effect]), [])
    }))

  it.effect("waits for rows that a command holds, longer than a statement may", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* boats(50)
      yield* apply(owner, [expand])
      const held = yield* Deferred.make<void>()
      const command = sql`select from boats where id = 20 for update`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(sql`select pg_sleep(3)`),
        sql.withTransaction,
      )
      const other = yield* Effect.forkChild(command)
      yield* Deferred.await(held)
      assert.deepStrictEqual(ids(yield* apply(owner, [expand, both], fillNow(pace, () => Effect.void))), [9_102])
      yield* Fiber.join(other)
      assert.strictEqual(yield* without, 0)
    }))
})
