/** A backup that was taken between two statements of a migration. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { join } from "node:path"
import { Database } from "../../../../services/platform/database/Database.ts"
import { connect } from "../../../../src/cli/backup/BackupConnection.ts"
import { openBackup } from "../../../../src/cli/backup/BackupReader.ts"
import { writeBackup } from "../../../../src/cli/backup/BackupWriter.ts"
import { outputTo } from "../../../../src/cli/backup/Output.ts"
import { beginUnfinished } from "../../../../src/cli/backup/UnfinishedMigration.ts"
import { rehearse } from "../../../../src/cli/upgrade/Rehearsal.ts"
import { apply, migrateCluster, migrations, newest, tables } from "../../../../src/Migrations.ts"
import { cli } from "../../../e2e/support/ProgramInstance.ts"
import { home } from "../../../support/Processes.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** Adds three columns, each by a statement of its own. */
const interrupted = 131
const committed = 2

const emptyDatabase = Effect.gen(function* () {
  const made = yield* TestDatabase.make
  const name = `${made.name}_empty`
  const server = yield* PgClient.make({ url: made.ownerUrl, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
  yield* Effect.acquireRelease(
    server`create database ${server(name)}`,
    () => Effect.orDie(server`drop database ${server(name)} with (force)`),
  )
  const at = (url: Redacted.Redacted) => Redacted.make(Redacted.value(url).replace(made.name, name))
  return { url: at(made.url), ownerUrl: at(made.ownerUrl) }
})

/** A backup of a database whose migration was interrupted after two of its statements. */
const backupMeanwhile = Effect.gen(function* () {
  const { ownerUrl } = yield* emptyDatabase
  const file = join(yield* home, "meanwhile.backup")
  yield* Effect.gen(function* () {
    const { owner } = yield* Database
    yield* apply(owner, migrations.filter(([id]) => id < interrupted))
    yield* migrateCluster(owner)
    yield* beginUnfinished(owner, migrations, { migration: interrupted, steps: committed })
    yield* owner`insert into backfills (name, table_name, rate, next_at, begun_at, revision)
      values ('boats', 'outbox_lanes', 1, now(), now(), 7)`
  }).pipe(Effect.provide(Database.layer({ url: ownerUrl, ownerUrl, maxConnections: 2 })))
  const db = yield* connect(ownerUrl)
  const out = yield* outputTo(file, { force: false })
  yield* Effect.promise(() =>
    writeBackup(db, out, { tables, tell: () => {}, madeAt: new Date("2026-02-01T00:00:00Z") })
  )
  return file
})

const rehearsed = Effect.fnUntraced(function* (file: string, list: typeof migrations) {
  const { ownerUrl } = yield* TestDatabase.make
  const backup = yield* Effect.acquireRelease(
    Effect.promise(() => openBackup(file, () => {})),
    ({ close }) => Effect.promise(close),
  )
  return yield* rehearse(backup, ownerUrl, list, { floor: 1, ceiling: 1 }, () => {})
}, Effect.scoped)

describe("a backup between two statements of a migration", () => {
  it.live(
    "is restored as it was, the next migration goes on after the statements that had committed, and a rehearsal does so, too",
    () =>
      Effect.gen(function* () {
        const file = yield* backupMeanwhile
        const into = yield* emptyDatabase
        const env = {
          BAILIWICK_HOME: yield* home,
          DATABASE_URL: Redacted.value(into.ownerUrl),
          DATABASE_OWNER_URL: Redacted.value(into.ownerUrl),
        }
        const db = yield* connect(into.ownerUrl)
        const rows = (text: string) => Effect.promise(() => db.rows<Record<string, unknown>>(text))
        const steps = rows(`select step from stepped_migrations where migration_id = ${interrupted} order by 1`)
        const restored = yield* cli(env, "restore", file)
        assert.strictEqual(restored.code, 0, restored.output)
        assert.deepStrictEqual(yield* steps, [{ step: 0 }, { step: 1 }])
        const migrated = yield* cli(env, "migrate")
        assert.strictEqual(migrated.code, 0, migrated.output)
        assert.deepStrictEqual(yield* steps, [{ step: 0 }, { step: 1 }, { step: 2 }])
        const boats = yield* rows(`select revision::int, failed_at from backfills where name = 'boats'`)
        assert.deepStrictEqual(boats, [{ revision: 7, failed_at: null }])
        const last = yield* rows(`select max(migration_id)::int as id from effect_sql_migrations`)
        assert.deepStrictEqual(last, [{ id: newest }])

        const { changed, from } = yield* rehearsed(file, migrations)
        assert.deepStrictEqual([changed, from], [[], interrupted - 1])
        const refused = yield* Effect.flip(rehearsed(file, migrations.filter(([id]) => id < interrupted)))
        assert.match(
          String(refused.message),
          /while a newer version applied its migration 131: restore it with that version/,
        )
      }).pipe(Effect.scoped),
    240_000,
  )
})
