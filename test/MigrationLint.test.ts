/** The law of migrations: none stops the world. Those up to 66 are older than it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { migrations } from "../src/Migrations.ts"
import { lintMigration, plainIndexes } from "./support/MigrationLint.ts"

const grandfathered = 66

type Work = Effect.Effect<unknown, unknown, SqlClient.SqlClient>

/** The statements of a migration that is an effect, recorded by a client that runs none. */
const recorded = Effect.fnUntraced(function* (work: Work) {
  const statements: Array<string> = []
  const record = (text: string | ReadonlyArray<string>) => {
    statements.push(typeof text === "string" ? text : text.join("null"))
    return Effect.succeed([])
  }
  const client = Object.assign(record, { unsafe: record }) as unknown as SqlClient.SqlClient
  yield* Effect.provideService(work, SqlClient.SqlClient, client)
  return statements
})

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "migrations")

/** The files of the migrations before one. */
const textsBefore = (id: number) =>
  readdirSync(folder).filter((name) => Number.parseInt(name, 10) < id).sort()
    .map((name) => readFileSync(join(folder, name), "utf8"))

describe("migrations", () => {
  for (const [id, name, work] of migrations.filter(([id]) => id > grandfathered)) {
    it.effect(`${id} ${name} stops no program`, () =>
      Effect.gen(function* () {
        const statements = Effect.isEffect(work) ? yield* recorded(Effect.flatMap(work, (made: Work) => made)) : work
        assert.isNotEmpty(statements)
        const plain = plainIndexes(textsBefore(id))
        assert.deepStrictEqual(yield* Effect.promise(() => lintMigration(statements, plain)), [])
      }))
  }

  const refused: Readonly<Record<string, RegExp>> = {
    "create index a on deliveries (id)": /CONCURRENTLY/,
    "create index concurrently a on deliveries (id)": /IF NOT EXISTS/,
    "drop index a": /DROP INDEX CONCURRENTLY/,
    "drop index concurrently if exists a": /ON CONFLICT/,
    "alter table deliveries add column a integer not null": /needs a default/,
    "alter table deliveries add column a uuid default gen_random_uuid()": /no constant/,
    "alter table deliveries add column a bigserial": /rewrites/,
    "alter table deliveries add column a integer generated always as (1) stored": /rewrites/,
    "alter table deliveries add column a integer check (a > 0)": /NOT VALID.*statement of its own/,
    "alter table deliveries alter column id type text": /rewrites/,
    "alter table deliveries alter column id set not null": /NOT VALID/,
    "alter table deliveries add constraint a check (true)": /NOT VALID/,
    "alter table deliveries add constraint a foreign key (id) references webhooks": /NOT VALID/,
    "alter table deliveries add constraint a unique (id)": /USING INDEX/,
    "alter table deliveries add primary key (id)": /USING INDEX/,
    "alter table deliveries drop column id": /min_app/,
    "alter table deliveries rename column id to a": /old name/,
    "alter table deliveries rename to a": /old name/,
    "alter table deliveries set unlogged": /rewrites/,
    "drop table deliveries": /min_app/,
    "update deliveries set id = id": /a backfill/,
    "delete from deliveries": /a backfill/,
    "with a as (update deliveries set id = id returning id) select from a": /a backfill/,
    "merge into deliveries d using webhooks w on d.id = w.id when matched then delete": /a backfill/,
    "insert into dead_letters (id) select id from deliveries": /whole table/,
    "insert into dead_letters (id) select id from a where id = 1 union all select id from deliveries": /whole table/,
    "insert into dead_letters (id) select id from deliveries where true": /whole table/,
    "insert into dead_letters (id) table deliveries": /whole table/,
    "insert into dead_letters (id) select d.id from deliveries d join webhooks w on w.id = d.webhook_id": /in a join/,
    "insert into dead_letters (id) select d.id from deliveries d, webhooks w where w.id = d.webhook_id": /in a join/,
    "insert into dead_letters (id) select id from deliveries left join webhooks using (id) where state = 'a'":
      /in a join/,
    "insert into dead_letters (id) select id from (select id from deliveries) d where id > 0": /a subselect/,
    "insert into dead_letters (id) select id from deliveries where id in (select id from webhooks)": /a subselect/,
    "insert into dead_letters (id) values ((select max(id) from deliveries))": /a subselect/,
    "insert into dead_letters (id) select 1 from lateral (select count(*) from deliveries) d": /a subselect/,
    "insert into dead_letters (id) values (1) on conflict (id) do update set n = (select count(*) from deliveries)":
      /a subselect/,
    "insert into dead_letters (id) values (1) returning (select count(*) from deliveries)": /a subselect/,
    "with d as (select id from deliveries) insert into dead_letters (id) select id from d": /whole table/,
    "with d as (delete from deliveries returning id) insert into dead_letters (id) select id from d": /a backfill/,
    "with d as (update deliveries set id = id returning 1) update schema_meta set min_app = 1": /a backfill/,
    "update schema_meta set min_app = (select count(*) from deliveries)": /a subselect/,
    "update schema_meta set min_app = 1 from deliveries": /a subselect/,
    "insert into dead_letters (id) select id from deliveries where a = pg_sleep(1)::text": /hides/,
    "create table a as select * from deliveries": /reads all/,
    "create materialized view a as select * from deliveries": /reads all/,
    "select * into a from deliveries": /reads all/,
    "select * into a from deliveries where id = 1": /reads all/,
    "select count(*) from deliveries": /a subselect/,
    "select id from deliveries where id = 1 for update": /a subselect/,
    "select set_config('lock_timeout', '0', false)": /hides/,
    "select pg_advisory_lock(1)": /hides/,
    "set lock_timeout = 0": /limits/,
    "set local statement_timeout = 0": /limits/,
    "commit": /transaction/,
    "call a()": /hides/,
    "prepare a as update deliveries set id = id": /hides/,
    "execute a": /hides/,
    "explain analyze update deliveries set id = id": /hides/,
    "copy deliveries to '/tmp/a'": /a backfill/,
    "alter table all in tablespace a set tablespace b": /rewrites/,
    "alter table deliveries add constraint a check (true) not valid, validate constraint a": /of its own/,
    "alter table deliveries add constraint a not null id": /NOT VALID/,
    "alter table deliveries alter column id set expression as (1)": /rewrites/,
    "alter table deliveries alter column id add generated always as identity": /rewrites/,
    "alter table deliveries detach partition a": /not known/,
    "alter table deliveries disable trigger all": /not known/,
    "alter table deliveries alter constraint a enforced": /not known/,
    "alter domain a add check (value > 0)": /not known/,
    "create table a partition of deliveries for values from (1) to (2)": /default partition/,
    "alter table deliveries set schema a": /not known/,
    "create rule a as on insert to deliveries do instead nothing": /not known/,
    "drop schema public cascade": /min_app/,
    "drop materialized view a": /min_app/,
    "drop function a cascade": /min_app/,
    "do $$ begin update deliveries set id = id; end $$": /hides/,
    "truncate deliveries": /takes away rows/,
    "alter table deliveries alter column id drop default": /leaves out/,
    "alter table deliveries drop constraint deliveries_pkey": /ON CONFLICT/,
    "lock table deliveries": /locks a table/,
    "vacuum full deliveries": /outside/,
    "cluster deliveries using a": /rewrites/,
    "reindex table deliveries": /CONCURRENTLY/,
    "select 1; select 2": /one statement/,
  }
  for (const [statement, why] of Object.entries(refused)) {
    it(`refuses ${statement}`, async () => {
      const faults = await lintMigration([statement])
      assert.strictEqual(faults.length, 1)
      assert.match(faults[0]!, why)
    })
  }

  it("refuses a unique index of the schema before that is dropped, and no plain one", async () => {
    const drop = (name: string) => `drop index concurrently if exists ${name}`
    const made = [
      "create unique index kept on deliveries (id); create index searched on deliveries (id)",
      "create unique index concurrently if not exists late on deliveries (id)",
      "create index concurrently if not exists turned on deliveries (id); create index was on deliveries (id)",
      "create unique index concurrently if not exists turned on deliveries (id)",
    ]
    const faults = async (...steps: ReadonlyArray<string>) => await lintMigration(steps, plainIndexes(made))
    for (const name of ["kept", "late", "turned", "unheard"]) {
      assert.match((await faults(drop(name))).join(), /ON CONFLICT.*min_app/, name)
      assert.deepStrictEqual(await faults("update schema_meta set min_app = 67", drop(name)), [], name)
    }
    assert.deepStrictEqual(await faults(drop("searched"), drop("public.was")), [])
    const anew = "create unique index concurrently if not exists searched on deliveries (id)"
    assert.match((await faults(drop("searched"), anew, drop("searched"))).join(), /ON CONFLICT/)
  })

  const pretended: ReadonlyArray<readonly [string, ReadonlyArray<string>, RegExp]> = [
    [
      "a table that was there",
      ["create table if not exists deliveries (id integer)", "create index a on deliveries (id)"],
      /CONCURRENTLY/,
    ],
    [
      "a table of that name in another schema",
      ["create table own.deliveries (id integer)", "alter table deliveries alter column id type text"],
      /rewrites/,
    ],
    [
      "a function around the change",
      ["create function a() returns integer language sql as 'update deliveries set id = id returning 1'", "select a()"],
      /hides/,
    ],
  ]
  for (const [what, steps, why] of pretended) {
    it(`refuses ${what}`, async () => {
      const faults = await lintMigration(steps)
      assert.strictEqual(faults.length, 1)
      assert.match(faults[0]!, why)
    })
  }

  it("admits what holds a lock for a moment, contractions behind the fence, and anything on a table of its own", async () => {
    const steps = [
      "alter table deliveries add column a integer",
      "alter table deliveries add column b text not null default 'x'",
      "alter table deliveries add column c timestamptz default now()",
      "create index concurrently if not exists d on deliveries (a)",
      "drop index concurrently if exists d",
      "alter table deliveries add constraint e check (a > 0) not valid",
      "alter table deliveries validate constraint e",
      "alter table deliveries add constraint f unique using index g",
      "create table own (id integer primary key)",
      "insert into own (id) select id from webhooks where is_active",
      "insert into own (id) select id from own union all select 1",
      "create table other (id integer, own integer not null)",
      "insert into other (id, own) select o.id, p.id from own o join own p using (id)",
      "insert into other (id, own) select id, (select count(*) from own) from own",
      "with o as (select id from own) insert into other (id, own) select id, id from o",
      "alter table deliveries alter column d set default 1",
      "alter table deliveries drop constraint e_check",
      "alter table deliveries add constraint e not null a not valid",
      "comment on table deliveries is 'x'",
      "create index own_id on own (id)",
      "alter table own alter column id type bigint",
      "update schema_meta set min_app = 67",
      "alter table deliveries drop column a",
      "drop table webhooks",
    ]
    assert.deepStrictEqual(await lintMigration(steps), [])
  })
})
