/** Reads from the database's own catalogue what to back up: tables, their columns, partitions, sequences. */
import type { BackupConnection } from "./BackupConnection.ts"
import type { Unfinished } from "./Format.ts"

export interface Table {
  readonly name: string
  /** The stored columns; computed ones are left out. */
  readonly columns: ReadonlyArray<string>
}

/** The program's tables, each before those that refer to it; tables of others in this database are left out. */
export const tablesOf = async (db: BackupConnection, ours: ReadonlyArray<string>): Promise<ReadonlyArray<Table>> => {
  const rows = await db.rows<{ name: string; columns: ReadonlyArray<string>; needs: ReadonlyArray<string> }>(
    `select c.relname as name,
      array(select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum) as columns,
      array(select distinct r.relname::text from pg_constraint k join pg_class r on r.oid = k.confrelid
        where k.conrelid = c.oid and k.contype = 'f' and k.confrelid <> c.oid) as needs
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname = any($1::text[])
    order by 1`,
    [ours],
  )
  const placed: Array<Table> = []
  const there = new Set<string>()
  let left = rows
  while (left.length > 0) {
    const next = left.filter(({ needs }) => needs.every((need) => there.has(need)))
    if (next.length === 0) throw new Error("tables refer to each other in a circle")
    for (const { columns, name } of next) {
      placed.push({ name, columns })
      there.add(name)
    }
    left = left.filter(({ name }) => !there.has(name))
  }
  return placed
}

/** Partitions, without the default ones, which the schema always has. */
export const partitionsOf = (db: BackupConnection) =>
  db.rows<{ table: string; name: string; bound: string; storage: string }>(
    `select p.relname as table, c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound,
      coalesce(array_to_string(c.reloptions, ', '), '') as storage
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
    where p.relnamespace = 'public'::regnamespace and c.relispartition and c.relkind = 'r'
      and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    order by 1, 2`,
  )

/** Read sequences after the tables: numbers may be drawn meanwhile, and none is ever drawn twice. */
export const sequencesOf = async (db: BackupConnection) => {
  const names = await db.rows<{ name: string }>(
    `select c.relname as name from pg_class c
    where c.relnamespace = 'public'::regnamespace
      and case when c.relkind = 'S' then has_sequence_privilege(c.oid, 'select') else false end
    order by 1`,
  )
  const found: Array<{ name: string; last: string; called: boolean }> = []
  for (const { name } of names) {
    const [row] = await db.rows<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from "${name}"`,
    )
    found.push({ name, ...row! })
  }
  return found
}

/** The migration of which some statements have committed and others have not, and how many have; null: none. */
export const unfinishedOf = async (db: BackupConnection): Promise<Unfinished | null> => {
  const [there] = await db.rows<{ there: boolean }>(`select to_regclass('stepped_migrations') is not null as there`)
  if (!there!.there) return null
  const [row] = await db.rows<{ migration: number; steps: number }>(
    `select migration_id::int as migration, count(*)::int as steps from stepped_migrations s
    where not exists (select from effect_sql_migrations m where m.migration_id = s.migration_id) group by 1 order by 1 limit 1`,
  )
  return row ?? null
}

/** The newest migration that was applied; 0 where there is none. */
export const schemaOf = async (db: BackupConnection): Promise<number> => {
  const [there] = await db.rows<{ there: boolean }>(`select to_regclass('effect_sql_migrations') is not null as there`)
  if (!there!.there) return 0
  const [row] = await db.rows<{ id: number }>(
    `select coalesce(max(migration_id), 0)::int as id from effect_sql_migrations`,
  )
  return row!.id
}
