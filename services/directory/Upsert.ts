/** The one statement pair that every kind's rows are written by. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Kind } from "./Kind.ts"
import type { Line } from "./Lines.ts"

const types = { id: "uuid", version: "bigint", removed: "boolean" } as const

/**
 * Writes the lines of one kind in the caller's transaction and says for each, in order, whether it was newer than all
 * before it. Rows that exist are locked first, ascending, so that this is exact; of several lines for one id only the
 * newest travels.
 */
export const upsert = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  kind: Kind,
  lines: ReadonlyArray<Line>,
  now: Date,
): Effect.fn.Return<ReadonlyArray<boolean>, SqlError.SqlError> {
  const table = sql(kind.table)
  const known = yield* sql<{ id: string; version: bigint }>`
    select id::text as id, version from ${table}
    where ${sql.in("id", lines.map(({ id }) => id))} order by id for update`
  const versions = new Map(known.map(({ id, version }) => [id, Number(version)]))
  const newest = new Map<string, Line>()
  const newer = lines.map((line) => {
    if (line.version <= (versions.get(line.id) ?? 0)) return false
    versions.set(line.id, line.version)
    newest.set(line.id, line)
    return true
  })
  if (newest.size === 0) return newer
  const rows = [...newest.values()].sort((a, b) => a.id < b.id ? -1 : 1).map(({ id, version, fields }) => ({
    ...fields,
    id,
    version,
    removed: fields === null,
  }))
  const names = Object.keys(kind.columns)
  const columns = sql.literal(["id", "version", "removed", ...names].join(", "))
  const record = sql.literal(
    Object.entries({ ...types, ...kind.columns }).map(([name, type]) => `${name} ${type}`).join(", "),
  )
  const kept = Object.fromEntries(
    names.map((name) => [name, `case when excluded.removed then t.${name} else excluded.${name} end`]),
  )
  const set = sql.literal(
    Object.entries({ ...kept, ...kind.set }).map(([name, value]) => `${name} = ${value}`).join(", "),
  )
  const written = yield* sql<{ id: string }>`
    insert into ${table} as t (${columns}, updated_at)
    select ${columns}, ${now}::timestamptz from jsonb_to_recordset(${sql.json(rows)}) as line (${record})
    on conflict (id) do update
    set version = excluded.version, removed = excluded.removed, updated_at = excluded.updated_at, ${set}
    where excluded.version > t.version
    returning id::text as id`
  const won = new Set(written.map(({ id }) => id))
  return lines.map((line, i) => newer[i]! && won.has(line.id))
})
