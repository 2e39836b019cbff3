/** Migration of a database whose audit had no monthly partitions, with records of years. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import auditMonths from "../../migrations/0026_audit_months.ts"
import { AuditPartitions } from "../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { leastIdAt } from "../../services/platform/Ids.ts"
import { months, nameOf } from "../../services/platform/database/RangePartitions.ts"
import { migrate } from "../../src/Migrations.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

const table = "audit_records"

/** The table as migrations 1 and 5 made it, with the grants of that time. */
const before = Effect.gen(function* () {
  const { owner, sql } = yield* Database
  const [app] = yield* sql<{ role: string }>`select current_user::text as role`
  yield* owner`drop table audit_records`
  yield* owner.unsafe(`create table audit_records (
    id uuid primary key,
    at timestamptz not null,
    request_id text,
    route text,
    action text not null,
    actor text,
    subject text,
    outcome text not null check (outcome in ('done', 'refused', 'failed')),
    status integer,
    code text,
    details jsonb not null default '{}'
  )`)
  yield* owner.unsafe(`create index audit_records_request on audit_records (request_id) where request_id is not null`)
  yield* owner.unsafe(`create index audit_records_subject on audit_records (subject, id) where subject is not null`)
  yield* owner.unsafe(`create index audit_records_actor on audit_records (actor, id) where actor is not null`)
  yield* owner.unsafe(
    `create index audit_records_gathered on audit_records using gin ((details->'request_ids') jsonb_path_ops)
      where details ? 'request_ids'`,
  )
  yield* owner`grant select, insert on audit_records to ${owner(app!.role)}`
})

/** This migration alone: the later ones were applied when the database was made. */
const monthly = Effect.flatMap(
  Database,
  ({ owner }) => auditMonths.pipe(Effect.provideService(SqlClient.SqlClient, owner), owner.withTransaction),
)

const fill = (n: number, from: number, to: number) =>
  Effect.flatMap(Database, ({ owner }) => {
    const step = Math.floor((to - from) / n)
    const rows = Array.from({ length: n }, (_, i) => ({
      id: leastIdAt(from + i * step),
      at: new Date(from + i * step),
      request_id: `old-${i}`,
      details: { count: 2, request_ids: [`old-${i}`, `more-${i}`] },
    }))
    return owner`
      insert into audit_records (id, at, action, outcome, request_id, details)
      select id, at, 'request.failed', 'refused', request_id, details
      from json_to_recordset(${JSON.stringify(rows)}::json) r(id uuid, at timestamptz, request_id text, details jsonb)`
  })

const shape = Effect.gen(function* () {
  const { owner } = yield* Database
  return yield* owner<{ name: string; unique: boolean; valid: boolean; children: number }>`
    select c.relname as name, i.indisunique as unique, i.indisvalid as valid,
      (select count(*)::int from pg_inherits h where h.inhparent = c.oid) as children
    from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = 'audit_records'::regclass order by 1`
})

const contents = Effect.flatMap(
  Database,
  ({ sql }) => sql<{ row: string }>`select a::text as row from audit_records a order by id`,
)

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("the audit of an older database", (it) => {
  it.effect("becomes a partition unchanged: every record, key, index and grant stays", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* before
      const now = Date.now()
      yield* fill(2_000, Date.parse("2023-01-01"), now)
      // A record of a machine whose clock was ahead.
      const ahead = leastIdAt(now + 90 * 86_400_000)
      yield* owner`insert into audit_records (id, at, action, outcome) values (${ahead}::uuid, ${new Date(
        now,
      )}, 'a', 'done')`
      const rows = yield* contents
      const [{ file }] = (yield* owner<{ file: string }>`
        select relfilenode::text as file from pg_class where relname = 'audit_records'`) as [{ file: string }]
      yield* monthly
      // Grants the program's role its rights on the migrated table.
      assert.deepStrictEqual(yield* migrate, [])

      assert.deepStrictEqual(yield* contents, rows)
      const month = months.of(now)
      const old = nameOf({ table, unit: months }, month)
      // No row was rewritten: the rows are still in the same file.
      const [kept] = yield* owner<{ file: string; rows: number }>`
        select relfilenode::text as file, (select count(*)::int from ${owner(old)}) as rows
        from pg_class where relname = ${old}`
      assert.deepStrictEqual(kept, { file, rows: 2_000 })
      const names = ["actor", "gathered", "pkey", "request", "subject"].map((name) => `audit_records_${name}`)
      assert.deepStrictEqual(
        yield* shape,
        names.map((name) => ({ name, unique: name.endsWith("pkey"), valid: true, children: 2 })),
      )

      const upkeep = Effect.flatMap(AuditPartitions, (audit) => audit.upkeep)
      yield* Effect.provide(Effect.andThen(upkeep, upkeep), AuditPartitions.layer({ auditDays: 400 }))
      assert.deepStrictEqual(yield* contents, rows)
      const parts = yield* owner<{ name: string }>`
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'audit_records'::regclass order by 1`
      assert.deepStrictEqual(parts.map(({ name }) => name), [
        "audit_records_default",
        ...[0, 1, 2].map((n) => nameOf({ table, unit: months }, month + n)),
      ])

      const found = yield* sql`
        select request_id from audit_records
        where details ? 'request_ids' and details->'request_ids' @> '["more-77"]'::jsonb`
      assert.deepStrictEqual(found, [{ request_id: "old-77" }])
      yield* sql`insert into audit_records (id, at, action, outcome) values (${leastIdAt(now + 1)}::uuid, ${new Date(
        now,
      )}, 'a', 'done')`
      for (
        const [statement, tag] of [
          [
            `insert into audit_records (id, at, action, outcome) values ('${
              leastIdAt(now + 1)
            }', '2026-01-01', 'a', 'done')`,
            "UniqueViolation",
          ],
          [
            `insert into audit_records (id, at, action, outcome) values ('${
              leastIdAt(now + 2)
            }', '2026-01-01', 'a', 'no')`,
            "ConstraintError",
          ],
          [`delete from ${old}`, "AuthorizationError"],
          ["update audit_records set actor = 'me'", "AuthorizationError"],
        ] as const
      ) {
        const refused = yield* Effect.flip(sql.unsafe(statement))
        assert.strictEqual(refused.reason._tag, tag, statement)
      }
    }))

  it.effect("gets no partition of the past where it is empty", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* before
      yield* monthly
      const parts = yield* owner<{ name: string }>`
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'audit_records'::regclass`
      assert.deepStrictEqual(parts, [{ name: "audit_records_default" }])
    }))

  it.effect("accepts writes of the version before it during the migration's commit", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* before
      yield* fill(10, Date.parse("2024-01-01"), Date.parse("2025-01-01"))
      yield* monthly
      const now = Date.now()
      yield* sql`insert into audit_records (id, at, action, outcome)
        values (${leastIdAt(now)}::uuid, ${new Date(now)}, 'a', 'done')`
      const rows = yield* contents
      assert.lengthOf(rows, 11)
    }))

  it.effect("is unchanged after a migration that was cut off, and becomes a partition the next time", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* before
      const now = Date.now()
      yield* fill(500, Date.parse("2024-01-01"), now)
      const late = leastIdAt(now + 90 * 86_400_000)
      yield* owner`insert into audit_records (id, at, action, outcome)
        values (${late}::uuid, ${new Date(now)}, 'a', 'done')`
      const rows = yield* contents
      // Stops the migration once the table is renamed and has its months, with a late record on its way.
      yield* owner.unsafe(`create function wait_for_the_test() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(2026); return old; end $$`)
      yield* owner`create trigger wait before delete on audit_records for each row execute function wait_for_the_test()`
      const [locked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = yield* sql`select pg_advisory_xact_lock(2026)`.pipe(
        Effect.andThen(Deferred.succeed(locked, undefined)),
        Effect.andThen(Deferred.await(go)),
        sql.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(locked)
      const cut = yield* Effect.forkChild(Effect.exit(monthly))
      // The owner has one connection; another owner's connection ends it.
      const { ownerUrl } = yield* TestDatabase
      yield* Effect.gen(function* () {
        const { sql: beside } = yield* Database
        const waiting = beside<{ pid: number }>`
          select l.pid from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
          where l.locktype = 'advisory' and not l.granted`
        const [found] = yield* waiting.pipe(Effect.repeat({ until: (found) => found.length === 1 }))
        yield* beside`select pg_terminate_backend(${found!.pid})`
      }).pipe(Effect.provide(Layer.fresh(Database.layer({ url: ownerUrl, ownerUrl, maxConnections: 1 }))))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(cut)))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(holding)

      assert.deepStrictEqual(yield* contents, rows)
      const kinds = owner<{ kind: string }>`select relkind::text as kind from pg_class where relname = 'audit_records'`
      assert.deepStrictEqual(yield* kinds, [{ kind: "r" }])
      yield* owner`drop trigger wait on audit_records`
      yield* monthly
      assert.deepStrictEqual(yield* contents, rows)
      assert.deepStrictEqual(yield* kinds, [{ kind: "p" }])
      assert.isTrue((yield* shape).every(({ children, valid }) => valid && children === 2))
    }))
})
