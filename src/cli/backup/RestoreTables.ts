/** Puts a backup into an empty database: in one transaction or not at all, by the role that owns the tables. */
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import { CliFault } from "../CliFault.ts"
import { schemaOf, tablesOf } from "./Tables.ts"
import type { BackupConnection } from "./BackupConnection.ts"
import type { Backup } from "./BackupReader.ts"

/** Tables into which migrations put rows; into `backfills`, that an empty table needs none. */
const seeded = new Set(["installation", "schema_meta", "outbox_lanes", "transfer_feature", "backfills"])

const mustBeEmpty = async (db: BackupConnection, tables: ReadonlyArray<string>, otherwise: string) => {
  for (const table of tables.filter((table) => !seeded.has(table))) {
    const [row] = await db.rows<{ full: boolean }>(`select exists (select from "${table}") as full`)
    if (row!.full) {
      throw new CliFault({ message: `the database is not empty: there are rows in ${table}; ${otherwise}` })
    }
  }
}

const mustFit = async (db: BackupConnection, { manifest }: Backup) => {
  const schema = await schemaOf(db)
  if (schema === manifest.schema) return
  const [which, how] = schema < manifest.schema
    ? ["a newer", "restore it with that version, then change versions"]
    : ["an older", "restore it into a database without tables"]
  throw new CliFault({
    message: `the backup was made by ${which} version (schema ${manifest.schema}, here ${schema}): ${how}`,
  })
}

/**
 * Another partition covers part of this range: the audit's partition from before it had months covers all months of its
 * time.
 */
const overlaps = (error: unknown) =>
  error instanceof Error && "code" in error && error.code === "42P17" && error.message.includes("overlap")

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`

/**
 * Restores all rows, and marks the installation as restored for the next start (Epochs). `now` is the database's time.
 */
export const fill = async (
  db: BackupConnection,
  backup: Backup,
  { now, otherwise = "restore into a new one", tables, tell }: {
    readonly now: Date
    /** The advice for a database that is not empty. */
    readonly otherwise?: string
    readonly tables: ReadonlyArray<string>
    readonly tell: (text: string) => void
  },
): Promise<number> => {
  const { made_at, partitions, parts, sequences } = backup.manifest
  await mustFit(db, backup)
  const here = await tablesOf(db, tables)
  const missing = parts.find(({ table }) => !here.some(({ name }) => name === table))
  if (missing !== undefined) throw new CliFault({ message: `there is no table ${missing.table} to restore into` })
  await db.rows("begin")
  try {
    await db.rows(`lock table ${here.map(({ name }) => `"${name}"`).join(", ")} in access exclusive mode`)
    await mustBeEmpty(db, here.map(({ name }) => name), otherwise)
    for (const { name } of here) {
      // The triggers checked these rows when they were first written: do not check them again.
      await db.rows(`alter table "${name}" disable trigger user`)
      if (seeded.has(name)) await db.rows(`delete from "${name}"`)
    }
    for (const { bound, name, storage, table } of partitions) {
      const [row] = await db.rows<{ there: boolean }>(`select to_regclass($1) is not null as there`, [name])
      if (row!.there) continue
      const how = storage === "" ? "" : `with (${storage})`
      await db.rows("savepoint partition")
      await db.rows(`create table "${name}" partition of "${table}" ${bound} ${how}`).catch(async (error) => {
        if (!overlaps(error)) throw error
        await db.rows("rollback to savepoint partition")
      })
    }
    let all = 0
    for (const [n, { name }] of here.entries()) {
      const part = parts.find(({ table }) => table === name)
      if (part === undefined) continue
      tell(`${n + 1} of ${here.length} tables, ${name}`)
      await pipeline(backup.rows(name), createGunzip(), (rows) => db.write(name, part.columns, rows))
      const [row] = await db.rows<{ rows: string }>(`select count(*)::text as rows from "${name}"`)
      if (Number(row!.rows) !== part.rows) {
        throw new CliFault({ message: `${name} has ${row!.rows} rows instead of ${part.rows}` })
      }
      all += part.rows
    }
    for (const { called, last, name } of sequences) {
      await db.rows(`select setval(${quoted(`"${name}"`)}::regclass, $1::bigint, $2)`, [last, called])
    }
    for (const { name } of here) await db.rows(`alter table "${name}" enable trigger user`)
    // Of an earlier restore, `lost_since` stays only where the installation was still held: an open one has dealt with
    // that loss.
    await db.rows(
      `update installation set restored_from = $1, state = 'held', held_since = $2, held_reason = 'restored',
        lost_since = case when state = 'held' then lost_since end, missing = '[]'`,
      [made_at, now.toISOString()],
    )
    await db.rows("commit")
    return all
  } catch (error) {
    await db.rows("rollback").catch(() => {})
    throw error
  }
}
