/**
 * Lines of kinds with a history. Each is written alone and its domain hears of the row before and after, so nothing
 * between two versions is lost; what a line says too much is set aside where lines are not followed.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Guard, Kind, LineRefused } from "./Kind.ts"
import type { Line } from "./Lines.ts"
import { write } from "./Upsert.ts"

interface Row {
  readonly id: string
  readonly version: number
  readonly removed: boolean
  readonly unfollowed?: boolean
  readonly [column: string]: unknown
}

/** What became of a line: old, written (but for the fields named), outvoted by what was decided, or not to be followed. */
export type Outcome =
  | { readonly _tag: "old" }
  | { readonly _tag: "written"; readonly setAside: ReadonlyArray<string> }
  | { readonly _tag: "outvoted"; readonly by: string }
  | { readonly _tag: "unfollowed" }

export const old: Outcome = { _tag: "old" }
export const written: Outcome = { _tag: "written", setAside: [] }
const unfollowed: Outcome = { _tag: "unfollowed" }

/** Fields that say something else than the row that they were written to. */
const differing = ({ fresh, known }: Guard, { fields }: Line, row: Row) =>
  [...new Set([...Object.keys(known), ...Object.keys(fresh)])].filter((name) =>
    fields !== null && name in fields && JSON.stringify(fields[name]) !== JSON.stringify(row[name])
  )

/** Whether what the line says of this column is not what stands. */
const stands = (column: string | undefined, { fields }: Line, row: Row): column is string =>
  column !== undefined && fields !== null && fields[column] !== row[column]

/** A version that was taken only in part is taken once more from whom is followed. */
const isNewer = (line: Line, { unfollowed, version }: Row, guard: Guard | null) =>
  line.version > version || line.version === version && unfollowed === true && guard === null

/**
 * Applies lines of one kind in the caller's transaction: those of one id in their order, ids ascending. `guard` holds
 * them to what they may say.
 */
export const applyEach = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  kind: Kind,
  lines: ReadonlyArray<Line>,
  now: Date,
  guard: Guard | null,
): Effect.fn.Return<ReadonlyArray<Outcome>, SqlError.SqlError | LineRefused> {
  if (kind.history?.lock !== undefined) yield* kind.history.lock(lines)
  const known = yield* sql<{ row: Row }>`
    select to_jsonb(t) as row from ${sql(kind.table)} t
    where ${sql.in("id", lines.map(({ id }) => id))} order by id collate "C" for update`
  const rows = new Map(known.map(({ row }) => [row.id, row]))
  const outcomes = lines.map((): Outcome => old)
  const ordered = lines.map((line, at) => ({ line, at })).sort((a, b) =>
    a.line.id < b.line.id ? -1 : a.line.id > b.line.id ? 1 : a.at - b.at
  )
  for (const { at, line } of ordered) {
    const before = rows.get(line.id) ?? null
    if (before !== null && !isNewer(line, before, guard)) continue
    if (guard !== null && (line.fields === null || before?.removed === true)) {
      outcomes[at] = unfollowed
      continue
    }
    const [row] = yield* write(sql, kind, [line], now, guard)
    if (row === undefined) continue
    const after = row.row as Row
    rows.set(line.id, after)
    const decided = kind.history?.decided
    outcomes[at] = stands(decided, line, after)
      ? { _tag: "outvoted", by: decided }
      : { _tag: "written", setAside: guard === null ? [] : differing(guard, line, after) }
    if (kind.history?.changed !== undefined) yield* kind.history.changed(before, after, now)
  }
  return outcomes
})
