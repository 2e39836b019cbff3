import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import type { Backfill } from "../../../services/platform/database/Backfills.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { connect } from "../../../src/cli/backup/BackupConnection.ts"
import { openBackup } from "../../../src/cli/backup/BackupReader.ts"
import { writeBackup } from "../../../src/cli/backup/BackupWriter.ts"
import { outputTo } from "../../../src/cli/backup/Output.ts"
import { linesOf } from "../../../src/cli/Upgrade.ts"
import { rehearse } from "../../../src/cli/upgrade/Rehearsal.ts"
import { type Migration, migrations, newest, tables } from "../../../src/Migrations.ts"
import { home } from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const tell = () => {}

/** The backup of the test's database, opened. */
const backup = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const file = join(yield* home, "backup")
  const db = yield* connect(url)
  const out = yield* outputTo(file, { force: false })
  yield* Effect.promise(() => writeBackup(db, out, { tables, tell, madeAt: new Date("2026-02-01T00:00:00Z") }))
  return yield* Effect.acquireRelease(
    Effect.promise(() => openBackup(file, tell)),
    ({ close }) => Effect.promise(close),
  )
})

const next = newest + 1

const heldMillis = 300

/** The locks are looked at on another connection, now and then: waits until two more looks have begun. */
const seen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const begun = Effect.gen(function* () {
    yield* sql`select pg_stat_clear_snapshot()`
    const [last] = yield* sql<{ at: string }>`
      select coalesce(max(query_start)::text, '') as at from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query like '%pg_locks%'`
    return last!.at
  })
  for (const _ of ["the first", "the next, which begins when the first is over"]) {
    const before = yield* begun
    yield* Effect.repeat(begun, { until: (at) => at !== before })
  }
})

/** Keeps a lock on accounts for `heldMillis` from a look that sees it to another one. */
const slow = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table accounts add column boat text`
  yield* seen
  yield* sql`select pg_sleep(${heldMillis / 1_000})`
  yield* seen
})

const rehearsed = Effect.fnUntraced(function* (...more: ReadonlyArray<Migration>) {
  const { ownerUrl } = yield* TestDatabase
  return yield* rehearse(yield* backup, ownerUrl, [...migrations, ...more], { floor: 2, ceiling: 4 }, tell)
})

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("upgrade rehearse", (it) => {
  it.effect(
    "says of each missing migration how long it takes and what it locks, and leaves no database behind",
    () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const steps = ["create index concurrently if not exists accounts_boat on accounts (boat)"]
        const found = yield* rehearsed([next, "slow", Effect.succeed(slow)], [next + 1, "index", steps])
        assert.deepStrictEqual(found.changed, [])
        assert.isAbove(found.rows, 0)
        const [locking, building] = found.migrations
        assert.strictEqual(locking!.name, `${String(next).padStart(4, "0")}_slow`)
        const lock = locking!.locks.find(({ table }) => table === "accounts")!
        assert.strictEqual(lock.mode, "AccessExclusiveLock")
        assert.isAtLeast(lock.millis, heldMillis)
        assert.isAtLeast(locking!.millis, lock.millis - 10)
        assert.deepStrictEqual([building!.name, building!.locks], [`${String(next + 1).padStart(4, "0")}_index`, []])
        const lines = linesOf(found)
        assert.match(lines[2]!, /^ {2}AccessExclusiveLock on accounts for \d+\.\d\d s$/)
        assert.include(
          lines,
          "every table has the rows and values that it had, and every project's history comes to them",
        )
        assert.deepStrictEqual(
          yield* owner`select datname from pg_database where datname like 'bailiwick_rehearsal_%'`,
          [],
        )
      }),
    120_000,
  )

  it.effect(
    "says of a backfill what is left of it, and how long it takes at the rate of this installation",
    () =>
      Effect.gen(function* () {
        const boats: Backfill = {
          name: "lanes_boat",
          table: "outbox_lanes",
          key: "lane",
          left: "boat is null",
          fill: "update outbox_lanes set boat = 'x' from bite where outbox_lanes.lane = bite.key",
        }
        const added: Migration = [next, "boat", ["alter table outbox_lanes add column boat text"]]
        const needing: Migration = [next + 1, "boats", ["comment on column outbox_lanes.boat is 'x'"], [boats]]
        const found = yield* rehearsed(added, needing)
        assert.deepStrictEqual(found.changed, [])
        const [backfill] = found.migrations[1]!.backfills
        assert.deepStrictEqual(backfill, {
          name: "lanes_boat",
          read: 16,
          changed: 16,
          minutesAtRate: 16 / 4 / 60,
          minutesAtFloor: 16 / 2 / 60,
        })
        const lines = linesOf(found)
        assert.include(
          lines,
          "  backfill lanes_boat reads 16 rows and changes 16: besides the reading, less than 0.1 minutes at BACKFILL_RATE (4 a second), " +
            "0.1 minutes at BACKFILL_FLOOR (2)",
        )
        assert.match(
          lines.join("\n"),
          /first leave the version before running until "[^"]+doctor" says that lanes_boat is finished/,
        )
      }),
    120_000,
  )

  it.effect(
    "says what a migration changes of the rows that are there, and that nothing is missing",
    () =>
      Effect.gen(function* () {
        const found = yield* rehearsed([next, "lossy", [
          "delete from outbox_lanes",
          "update transfer_feature set enabled = not enabled",
          "alter table accounts drop column plan",
          "insert into lifecycle_heads (project_id, position) values ('portal', 1)",
          "insert into lifecycle_state (project_id, key, value, position) values ('portal', 'service_grant/shop', '{}', 1)",
        ]])
        const lost = found.changed[0]
        const rows = found.changed.find((line) => line.startsWith("outbox_lanes"))
        const values = found.changed.find((line) => line.startsWith("transfer_feature"))
        assert.strictEqual(
          found.changed.at(-1),
          "project portal has drifted: service_grant/shop is nothing in the tables, approved in its history",
        )
        assert.strictEqual(lost, "accounts has no column plan any more")
        assert.match(rows!, /^outbox_lanes has 0 rows, and had \d+$/)
        assert.strictEqual(values, "transfer_feature has other values in the columns that it had")
        assert.match(
          linesOf(yield* rehearsed()).join("\n"),
          new RegExp(`^\\d+ rows of schema ${newest}: nothing to apply$`),
        )
      }),
    120_000,
  )
})
