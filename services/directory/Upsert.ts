/** The statement that writes the rows of every kind. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { DirectoryRow, Guard, Kind } from "./Kind.ts"
import type { Line } from "./Lines.ts"

const common = { version: "bigint", removed: "boolean" } as const

interface Written {
  readonly id: string
  /** As JSON. */
  readonly row: unknown
}

const recordOf = (kind: Kind, { fields, id, version }: DirectoryRow & { readonly version: number }) => ({
  ...kind.defaults,
  ...fields,
  id,
  version,
  removed: fields === null,
})

// A tombstone keeps the last fields, for rows that still refer to it.
const setsOf = (kind: Kind, guard: Guard | null) => {
  const kept = Object.keys(kind.columns).map((name) =>
    [name, `case when excluded.removed then t.${name} else excluded.${name} end`] as const
  )
  return { ...Object.fromEntries(kept), ...kind.set, ...guard?.known }
}

/** Whether lines of a kind with this guard may be applied in part. */
const isGuarding = ({ fresh, known }: Guard) => Object.keys(known).length + Object.keys(fresh).length > 0

/**
 * Writes lines of one kind, at most one for each id, where they are newer than their rows; returns the written rows.
 * `guard`, where given, restricts what the lines may change.
 */
export const write = (
  sql: PgClient.PgClient,
  kind: Kind,
  lines: ReadonlyArray<Line>,
  now: Date,
  guard: Guard | null = null,
): Effect.Effect<ReadonlyArray<Written>, SqlError.SqlError> => {
  const stamped = (kind.stamped ?? []).map((name) => [name, "timestamptz"] as const)
  // A line may be applied only in part: `unfollowed` marks the row, so that the same version is applied again with
  // trust.
  const partly = kind.history !== undefined && kind.history.guard !== "kind" && isGuarding(kind.history.guard)
  const types = {
    id: kind.ids,
    ...common,
    ...kind.columns,
    ...Object.fromEntries(stamped),
    ...(partly ? { unfollowed: "boolean" } : {}),
  }
  const rows = lines.map((line) => ({
    ...recordOf(kind, line),
    ...guard?.fresh,
    ...Object.fromEntries(stamped.map(([name]) => [name, now])),
    ...(partly ? { unfollowed: guard !== null } : {}),
  }))
  const columns = sql.literal(Object.keys(types).join(", "))
  const record = sql.literal(Object.entries(types).map(([name, type]) => `${name} ${type}`).join(", "))
  const sets = { ...setsOf(kind, guard), ...(partly ? { unfollowed: "excluded.unfollowed" } : {}) }
  const same = partly ? "or excluded.version = t.version and t.unfollowed and not excluded.unfollowed" : ""
  const set = sql.literal(Object.entries(sets).map(([name, value]) => `${name} = ${value}`).join(", "))
  return sql<Written>`
    insert into ${sql(kind.table)} as t (${columns}, updated_at)
    select ${columns}, ${now}::timestamptz from jsonb_to_recordset(${sql.json(rows)}) as line (${record})
    on conflict (id) do update
    set version = excluded.version, removed = excluded.removed, updated_at = excluded.updated_at, ${set}
    where excluded.version > t.version ${sql.literal(same)}
    returning id::text as id, ${sql.literal(kind.history === undefined ? "null" : "to_jsonb(t)")} as row`
}

/**
 * Writes the lines of one kind in the caller's transaction; returns for each, in order, whether it was newer than all
 * before it. Existing rows are locked first, ids ascending, so that this is exact; of several lines for one id only the
 * newest is sent.
 */
export const upsert = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  kind: Kind,
  lines: ReadonlyArray<Line>,
  now: Date,
): Effect.fn.Return<ReadonlyArray<boolean>, SqlError.SqlError> {
  const known = yield* sql<{ id: string; version: bigint }>`
    select id::text as id, version from ${sql(kind.table)}
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
  const rows = [...newest.values()].sort((a, b) => a.id < b.id ? -1 : 1)
  const won = new Set((yield* write(sql, kind, rows, now)).map(({ id }) => id))
  return lines.map((line, i) => newer[i]! && won.has(line.id))
})
