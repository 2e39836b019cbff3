/** The law of migrations: none stops the world. Those up to 66 are older than it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { migrations } from "../src/Migrations.ts"
import { lintMigration } from "./support/MigrationLint.ts"

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

describe("migrations", () => {
  for (const [id, name, work] of migrations.filter(([id]) => id > grandfathered)) {
    it.effect(`${id} ${name} stops no program`, () =>
      Effect.gen(function* () {
        const statements = Effect.isEffect(work) ? yield* recorded(Effect.flatMap(work, (made: Work) => made)) : work
        assert.isNotEmpty(statements)
        assert.deepStrictEqual(yield* Effect.promise(() => lintMigration(statements)), [])
      }))
  }

  const refused: Readonly<Record<string, RegExp>> = {
    "create index a on deliveries (id)": /CONCURRENTLY/,
    "create index concurrently a on deliveries (id)": /IF NOT EXISTS/,
    "drop index a": /DROP INDEX CONCURRENTLY/,
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
    "create table a as select * from deliveries": /reads all/,
    "do $$ begin update deliveries set id = id; end $$": /hides/,
    "truncate deliveries": /takes away rows/,
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
      "create index own_id on own (id)",
      "alter table own alter column id type bigint",
      "update schema_meta set min_app = 67",
      "alter table deliveries drop column a",
      "drop table webhooks",
    ]
    assert.deepStrictEqual(await lintMigration(steps), [])
  })
})
