import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Database } from "../../services/platform/database/Database.ts"
import { connect } from "../../src/cli/backup/BackupConnection.ts"
import { writeBackup } from "../../src/cli/backup/BackupWriter.ts"
import { outputTo } from "../../src/cli/backup/Output.ts"
import { refuseUnfilled } from "../../src/MigrationBackfills.ts"
import { migrate, migrateWith, tables } from "../../src/Migrations.ts"
import { home, start } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

const files = readdirSync("migrations").map((name) => name.replace(/\.ts$/, "")).sort()

/** An empty database beside the migrated one. */
const emptyUrls = Effect.fnUntraced(function* (suffix: string) {
  const { owner } = yield* Database
  const { name, ownerUrl, url } = yield* TestDatabase
  const other = `${name}${suffix}`
  yield* Effect.acquireRelease(
    owner.unsafe(`create database ${other}`),
    () => Effect.orDie(owner.unsafe(`drop database ${other} with (force)`)),
  )
  const at = (address: Redacted.Redacted) => Redacted.make(Redacted.value(address).replace(name, other))
  return { url: at(url), ownerUrl: at(ownerUrl) }
})

const empty = Effect.map(emptyUrls("_empty"), (urls) => Database.layer({ ...urls, maxConnections: 2 }))

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("Migrations", (it) => {
  it.effect("concurrent starts apply each migration once, in order, and the next start applies none", () =>
    Effect.gen(function* () {
      const database = yield* empty
      const start = migrate.pipe(Effect.provide(Layer.fresh(database)), Effect.scoped)
      const applied = yield* Effect.all([start, start, start], { concurrency: "unbounded" })
      assert.deepStrictEqual(applied.flat().sort(), files, "files of migrations/ and rows of src/Migrations.ts")
      assert.deepStrictEqual(yield* start, [])
    }))

  it.effect("cli restore makes the schema of an older version's backup, and the next start applies what is missing", () =>
    Effect.gen(function* () {
      const older = 124
      const folder = yield* home
      const file = join(folder, "backup")
      const [from, into] = [yield* emptyUrls("_from"), yield* emptyUrls("_into")]
      const at = (urls: typeof from) => Database.layer({ ...urls, maxConnections: 2 })
      yield* migrateWith(refuseUnfilled, older).pipe(Effect.provide(Layer.fresh(at(from))), Effect.scoped)
      const db = yield* connect(from.ownerUrl)
      const out = yield* outputTo(file, { force: false })
      yield* Effect.promise(() => writeBackup(db, out, { tables, tell: () => {}, madeAt: new Date() }))
      const restoring = yield* start({
        module: "src/cli/main.ts",
        args: ["restore", file],
        env: {
          BAILIWICK_HOME: folder,
          DATABASE_URL: Redacted.value(into.url),
          DATABASE_OWNER_URL: Redacted.value(into.ownerUrl),
        },
      })
      assert.strictEqual(yield* restoring.exited, 0, restoring.output())
      assert.include(restoring.output(), `the schema is ${older}, as it was`)
      const applied = yield* migrate.pipe(Effect.provide(Layer.fresh(at(into))), Effect.scoped)
      assert.deepStrictEqual(applied, files.filter((name) => Number(name.slice(0, 4)) > older))
    }).pipe(Effect.scoped))

  it.effect("a start waits for another one beyond the lock timeout of a statement", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const held = yield* Deferred.make<void>()
      const other = owner`lock table effect_sql_migrations in access exclusive mode`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(owner`select pg_sleep(2.5)`),
        owner.withTransaction,
      )
      const { ownerUrl, url } = yield* TestDatabase
      const start = Effect.andThen(Deferred.await(held), migrate).pipe(
        Effect.provide(Layer.fresh(Database.layer({ url, ownerUrl, maxConnections: 2 }))),
        Effect.scoped,
      )
      const [applied] = yield* Effect.all([start, other], { concurrency: "unbounded" })
      assert.deepStrictEqual(applied, [])
    }))

  it.effect("a start also waits for another one that makes the cluster's tables meanwhile", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ownerUrl, url } = yield* TestDatabase
      const held = yield* Deferred.make<void>()
      const starting = yield* Effect.forkChild(
        Effect.andThen(Deferred.await(held), migrate).pipe(
          Effect.provide(Layer.fresh(Database.layer({ url, ownerUrl, maxConnections: 2 }))),
          Effect.scoped,
        ),
      )
      const turns = new Set<number>()
      yield* sql.withTransaction(Effect.gen(function* () {
        yield* sql`select pg_advisory_xact_lock(hashtext('bailiwick cluster'))`
        yield* Deferred.succeed(held, undefined)
        // Waits until the start has asked for the lock a second time, or has failed.
        while (turns.size < 2 && starting.pollUnsafe() === undefined) {
          const waiting = yield* sql<{ since: Date | null }>`
            select waitstart as since from pg_locks where locktype = 'advisory' and not granted
              and database = (select oid from pg_database where datname = current_database())`
          for (const { since } of waiting) if (since !== null) turns.add(since.getTime())
          yield* Effect.sleep("20 millis")
        }
      }))
      assert.deepStrictEqual(yield* Fiber.join(starting), [])
      assert.strictEqual(turns.size, 2)
    }))

  it.effect("readiness asks for exactly the tables that the migrations make", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const made = yield* owner<{ name: string }>`
        select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition`
      const internal = [
        "effect_sql_migrations",
        "stepped_migrations",
        "cluster_runner_migrations",
        "cluster_runners",
        "cluster_locks",
      ]
      const found = made.map(({ name }) => name).filter((name) => !internal.includes(name))
      assert.deepStrictEqual(found.sort(), [...tables].sort(), "`tables` of src/Migrations.ts")
      assert.strictEqual(new Set(tables).size, tables.length)
    }))

  it.effect("the program's role has exactly the grants that it needs, also after an older version gave more", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const [app] = yield* sql<{ role: string }>`select current_user::text as role`
      const everything = owner`grant select, insert, update, delete on all tables in schema public to ${
        owner(app!.role)
      }`
      const granted = owner<{ name: string; privileges: string }>`
        select table_name::text as name, string_agg(privilege_type, ' ' order by privilege_type) as privileges
        from information_schema.role_table_grants
        where table_schema = 'public' and grantee = ${app!.role} group by 1`
      yield* everything
      yield* migrate
      const found = new Map((yield* granted).map(({ name, privileges }) => [name, privileges]))

      const grants: Readonly<Record<string, ReadonlyArray<string>>> = {
        // Evidence, histories and received events are only added; the owner drops their partitions.
        "INSERT SELECT": [
          "access_confirmations",
          "access_ends",
          "access_review_evidence",
          "access_versions",
          "audit_records",
          "events",
          "lifecycle_events",
          "lifecycle_places",
          "log_entries",
          "policy_approvals",
        ],
        // The migrators write these as the owner; `doctor`, readiness and `backup` read the schema's version there.
        "SELECT": [
          "cluster_runner_migrations",
          "effect_sql_migrations",
          "lifecycle_told",
          "provenance",
          "schema_meta",
          "stepped_migrations",
        ],
      }
      const special = new Set(Object.values(grants).flat())
      const expected = new Map(
        Object.entries(grants).flatMap(([privileges, names]) => names.map((name) => [name, privileges] as const)),
      )
      // State that commands change, queues that workers empty, and the cluster's runners.
      for (const name of [...tables, "cluster_runners", "cluster_locks"].filter((name) => !special.has(name))) {
        expected.set(name, "DELETE INSERT SELECT UPDATE")
      }
      const hint = "a table of `appendOnly` in src/Migrations.ts stands under INSERT SELECT above as well"
      assert.deepStrictEqual([...found].sort(), [...expected].sort(), hint)
    }))

  it.effect("the program's role can change neither evidence nor the schema", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (
        const statement of [
          "delete from audit_records",
          "update audit_records set actor = 'me'",
          "update events set body = ''",
          "delete from events",
          "delete from audit_records_default",
          "update events_default set body = ''",
          "truncate deliveries",
          "update events_default set body = ''",
          "delete from effect_sql_migrations",
          "update schema_meta set min_app = 2",
          "drop table deliveries",
          "create table mine (n integer)",
          "alter table webhooks disable trigger all",
        ]
      ) {
        const refused = yield* Effect.flip(sql.unsafe(statement))
        assert.strictEqual(refused.reason._tag, "AuthorizationError", statement)
      }
    }))

  it.effect("ids of the directory are plain, by a check that builds no large automaton for each row", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const repeated = yield* owner<{ conname: string }>`
        select conname from pg_constraint where contype = 'c' and pg_get_constraintdef(oid) ~ '[}]'`
      assert.deepStrictEqual(repeated, [])
      const [people] = yield* owner<{ rule: string; validated: boolean }>`
        select pg_get_expr(conbin, conrelid) as rule, convalidated as validated from pg_constraint
        where conname = 'people_id_check'`
      assert.isTrue(people!.validated)
      const ids = [
        "a",
        "Z-_9",
        "x".repeat(128),
        "",
        "x".repeat(129),
        "a b",
        "a\n",
        "\na",
        "é",
        "a.b",
        "a~",
        "[a]",
        "^$",
      ]
      for (const id of ids) {
        const [row] = yield* owner.unsafe<{ plain: boolean }>(
          `select ${people!.rule} as plain from (select $1::text as id)`,
          [id],
        )
        assert.strictEqual(row!.plain, /^[A-Za-z0-9_-]{1,128}$/.test(id) && !id.endsWith("\n"), JSON.stringify(id))
      }
    }))

  it.effect("no migration asks the database for the time", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const defaults = yield* owner<{ at: string }>`
        select table_name || '.' || column_name as at from information_schema.columns
        where table_schema = 'public' and table_name !~ '^(effect_sql_migrations$|cluster_)'
          and column_default ~* 'now\\(|current_|clock_timestamp|uuid'`
      assert.deepStrictEqual(defaults, [])
    }))
})
