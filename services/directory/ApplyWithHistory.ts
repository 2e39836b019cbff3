/**
 * Applies lines of kinds with a history. Each line is written alone, and its domain gets the row before and after, so
 * no change between two versions is lost. Guarded fields of a line without trust are not applied.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
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

/**
 * The outcome of a line: old, written (except the fields in `setAside`), overridden by a decision, or refused for
 * trust.
 */
export type Outcome =
  | { readonly _tag: "old" }
  | { readonly _tag: "written"; readonly setAside: ReadonlyArray<string> }
  | { readonly _tag: "outvoted"; readonly by: string }
  | { readonly _tag: "unfollowed" }

export const old: Outcome = { _tag: "old" }
export const written: Outcome = { _tag: "written", setAside: [] }
const unfollowed: Outcome = { _tag: "unfollowed" }

/** Guarded fields in which the line differs from the row after it was written. */
const differing = ({ fresh, known }: Guard, { fields }: Line, row: Row) =>
  [...new Set([...Object.keys(known), ...Object.keys(fresh)])].filter((name) =>
    fields !== null && name in fields && JSON.stringify(fields[name]) !== JSON.stringify(row[name])
  )

/** Whether the row's decided column has another value than the line. */
const stands = (column: string | undefined, { fields }: Line, row: Row): column is string =>
  column !== undefined && fields !== null && fields[column] !== row[column]

/** Whether the line is newer. A version that was applied only in part is applied again when it comes with trust. */
const isNewer = (line: Line, { unfollowed, version }: Row, guard: Guard | null) =>
  line.version > version || line.version === version && unfollowed === true && guard === null

/**
 * Applies lines of one kind in the caller's transaction: the lines of one id in their order, ids ascending. `guard`,
 * where given, restricts what they may change.
 */
export const applyEach = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  kind: Kind,
  lines: ReadonlyArray<Line>,
  now: Date,
  guard: Guard | null,
): Effect.fn.Return<ReadonlyArray<Outcome>, SqlError.SqlError | LineRefused, InTransaction> {
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
