/**
 * Rehearses an upgrade on a backup: restores it into a scratch database at the schema that it was made with, applies the
 * migrations that are missing, and measures how long each takes and which locks it holds. Compares every table before
 * and after, over the columns that it had before. The scratch database is dropped at the end.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { Drift } from "../../../services/lifecycle/Drift.ts"
import { type Backfill, type Pace, progressOf } from "../../../services/platform/database/Backfills.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { fillNow } from "../../MigrationBackfills.ts"
import { apply, migrateCluster, type Migration, tables } from "../../Migrations.ts"
import { type BackupConnection, connect, listOf } from "../backup/BackupConnection.ts"
import type { Backup } from "../backup/BackupReader.ts"
import { fill } from "../backup/RestoreTables.ts"
import { type Table, tablesOf } from "../backup/Tables.ts"
import { beginUnfinished } from "../backup/UnfinishedMigration.ts"
import { CliFault } from "../CliFault.ts"
import { reasonOf } from "../Reason.ts"
import { type LockHeld, watchLocks } from "./LockWatch.ts"

/** A backfill that a migration needs, and about how long it takes at the pace of this installation's processes. */
export interface RehearsedBackfill {
  readonly name: string
  /** Rows that were read, and rows that were changed, by what the backup had not finished. */
  readonly read: number
  readonly changed: number
  readonly minutesAtRate: number
  readonly minutesAtFloor: number
}

export interface RehearsedMigration {
  readonly name: string
  readonly backfills: ReadonlyArray<RehearsedBackfill>
  readonly millis: number
  /** Longest first. */
  readonly locks: ReadonlyArray<LockHeld>
}

export interface Rehearsal {
  readonly rows: number
  readonly from: number
  readonly migrations: ReadonlyArray<RehearsedMigration>
  /**
   * Tables whose rows, or columns of before, are others after the migrations, and projects whose history no longer comes to
   * what the tables say, with what differs.
   */
  readonly changed: ReadonlyArray<string>
}

/** A database of this run alone, by the owner's role, which must be allowed to create one. */
const scratch = Effect.fnUntraced(function* (ownerUrl: Redacted.Redacted) {
  const name = `bailiwick_rehearsal_${crypto.randomUUID().replaceAll("-", "")}`
  const server = yield* PgClient.make({ url: ownerUrl, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
  yield* Effect.acquireRelease(
    server`create database ${server(name)}`.pipe(
      Effect.mapError((error) => new CliFault({ message: `cannot create a scratch database: ${reasonOf(error)}` })),
    ),
    () => Effect.orDie(server`drop database if exists ${server(name)} with (force)`),
  )
  const url = new URL(Redacted.value(ownerUrl))
  url.pathname = `/${name}`
  return Redacted.make(url.href)
})

/** The count of a table's rows, and a sum over their text that no order changes. */
const digest = async (db: BackupConnection, { columns, name }: Table) => {
  const [row] = await db.rows<{ rows: string; sum: string }>(
    `select count(*)::text as rows, coalesce(sum(hashtextextended(row(${listOf(columns)})::text, 0)), 0)::text as sum
    from "${name}"`,
  )
  return row!
}

const digests = (db: BackupConnection, of: ReadonlyArray<Table>) =>
  Effect.tryPromise({
    try: async () => {
      const found = new Map<string, { readonly rows: string; readonly sum: string }>()
      for (const table of of) found.set(table.name, await digest(db, table))
      return found
    },
    catch: (error) => new CliFault({ message: `cannot compare the tables: ${reasonOf(error)}` }),
  })

/** The difference of a table from `before`; null: none. */
const difference = Effect.fnUntraced(function* (db: BackupConnection, before: ReadonlyArray<Table>) {
  const after = yield* Effect.promise(() => tablesOf(db, before.map(({ name }) => name)))
  const gone = before.filter(({ name }) => !after.some((table) => table.name === name))
  const kept = before.flatMap(({ columns, name }) => {
    const now = after.find((table) => table.name === name)
    return now === undefined ? [] : [{ name, columns: columns.filter((column) => now.columns.includes(column)) }]
  })
  const lost = kept.flatMap(({ columns, name }) => {
    const was = before.find((table) => table.name === name)!.columns
    const missing = was.filter((column) => !columns.includes(column))
    return missing.length === 0 ? [] : [`${name} has no column ${missing.join(", ")} any more`]
  })
  return { kept, lines: [...gone.map(({ name }) => `${name} is gone`), ...lost] }
})

/** Compares each project's history with the tables that it tells of; names the differences that the backup did not know. */
const drifted = Effect.gen(function* () {
  const { sql } = yield* Database
  const { look } = yield* Drift
  const known = yield* sql<{ project_id: string; key: string }>`select project_id, key from lifecycle_drift`
  yield* sql`delete from lifecycle_drift_looks`
  yield* Effect.repeat(look, { while: (more) => more })
  const found = yield* sql<{ project_id: string; key: string; expected: string | null; observed: string | null }>`
    select project_id, key, expected, observed from lifecycle_drift order by project_id, key`
  return found.filter((one) => !known.some(({ key, project_id }) => key === one.key && project_id === one.project_id))
    .map(({ expected, key, observed, project_id }) =>
      `project ${project_id} has drifted: ${key} is ${expected ?? "nothing"} in the tables, ${
        observed ?? "nothing"
      } in its history`
    )
}).pipe(Effect.provide(Drift.layer))

/** Rows that a backfill reads and changes while `work` runs, as it counts them itself. */
const counted = Effect.fnUntraced(function* <A, E, R>(
  needs: ReadonlyArray<Backfill>,
  pace: Pace,
  work: Effect.Effect<A, E, R>,
) {
  const { sql } = yield* Database
  // A migration before 124 has none of these, and no table of them.
  const all = needs.length === 0 ? Effect.succeed([]) : progressOf(sql)
  const before = yield* all
  const result = yield* work
  const backfills = (yield* all).filter(({ name }) => needs.some((need) => need.name === name)).map((now) => {
    const was = before.find(({ name }) => name === now.name) ?? { changed: 0, read: 0 }
    const changed = now.changed - was.changed
    const minutesAt = (rate: number) => changed / rate / 60
    // A walk that was begun anew counts its reading from nothing.
    const read = now.read < was.read ? now.read : now.read - was.read
    return {
      name: now.name,
      read,
      changed,
      minutesAtRate: minutesAt(pace.ceiling),
      minutesAtFloor: minutesAt(pace.floor),
    }
  })
  return { ...result, backfills }
})

/** No other process uses the scratch database. */
const scratchPace = { floor: 10_000, ceiling: 200_000 }

/** Rehearses the migrations of `list` on an opened backup. Fails with CliFault, and drops the scratch database. */
export const rehearse = Effect.fn("rehearse")(function* (
  backup: Backup,
  ownerUrl: Redacted.Redacted,
  list: ReadonlyArray<Migration>,
  pace: Pace,
  tell: (text: string) => void,
) {
  const { schema: from, unfinished } = backup.manifest
  const known = Math.max(...list.map(([id]) => id))
  if (from > known) {
    return yield* new CliFault({
      message: `the backup has schema ${from}, and this program knows ${known}: use a newer one`,
    })
  }
  const url = yield* scratch(ownerUrl)
  const db = yield* connect(url)
  return yield* Effect.gen(function* () {
    const { owner, sql } = yield* Database
    yield* apply(owner, list.filter(([id]) => id <= from))
    if (unfinished) yield* beginUnfinished(owner, list, unfinished)
    yield* migrateCluster(owner)
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* Effect.tryPromise({
      try: () => fill(db, backup, { now, tables, tell }),
      catch: (error) => new CliFault({ message: `the backup was not restored: ${reasonOf(error)}` }),
    })
    // Migrations write these themselves, or the backfills that they need.
    const ours = tables.filter((table) => table !== "schema_meta" && table !== "backfills")
    const before = yield* Effect.promise(() => tablesOf(db, ours))
    const migrations: Array<RehearsedMigration> = []
    const missing = list.filter(([id]) => id > from)
    tell("comparing")
    const digested = yield* digests(db, before)
    for (const [id, name, , needs = []] of missing) {
      tell(`migration ${id}`)
      const upTo = list.filter((migration) => migration[0] <= id)
      const filled = fillNow(scratchPace, (text) => Effect.sync(() => tell(text)))
      const watched = watchLocks(sql, before.map((table) => table.name), apply(owner, upTo, filled))
      const seen = yield* counted(needs, pace, watched)
      migrations.push({ name: `${String(id).padStart(4, "0")}_${name}`, ...seen })
    }
    const { kept, lines } = yield* difference(db, before)
    // A table that lost a column has another sum for that reason alone: only its count is compared.
    const whole = new Set(
      before.filter((t) => kept.some((k) => k.name === t.name && k.columns.length === t.columns.length)).map((
        { name },
      ) => name),
    )
    const again = yield* digests(db, kept)
    const changed = [...again].flatMap(([name, after]) => {
      const was = digested.get(name)!
      if (was.rows !== after.rows) return [`${name} has ${after.rows} rows, and had ${was.rows}`]
      return whole.has(name) && was.sum !== after.sum ? [`${name} has other values in the columns that it had`] : []
    })
    tell("comparing histories")
    const drift = missing.length === 0 ? [] : yield* drifted
    return { rows, from, migrations, changed: [...lines, ...changed, ...drift] } satisfies Rehearsal
  }).pipe(Effect.provide(Database.layer({ url, ownerUrl: url, maxConnections: 2 })))
}, Effect.scoped)
