/**
 * Commands as load · decide · write: one statement reads everything that a decision stands on, without locks; a pure
 * function decides; one statement, which is its own transaction, writes all that came of it.
 *
 * Rows are locked inside the write only, and a lock that is waited for checks its own row again and nothing else. So a
 * decision stands on fences: columns that every change of a row raises, compared with what was loaded. Whatever counts
 * rows fences a counter that each of its writers raises; counting again in the write would read the old snapshot. Where
 * one fence is missed the statement fails as a serialization failure, nothing of it is kept, and the command begins anew
 * with a fresh load.
 *
 * Fences are taken in the order in which they are given, each only once the one before is complete: the callers keep to
 * the global order of locks, as transactions do. What was gathered (Gathered.ts) is written after the last fence.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Data, Effect, Semaphore } from "effect"
import { SqlError, type Statement } from "effect/sql"
import { DependencyUnavailable } from "../../../schemas/problems/Floor.ts"
import { type Collected, collected } from "./Gathered.ts"

/** What was loaded is known to be no longer so before anything is written. */
export class Conflict extends Data.TaggedError("Conflict") {}

/** Rows that must be as they were loaded. */
export interface Fence {
  /** A statement that gives one row for each that is so, under `earlier`: the condition that all fences before hold. */
  readonly statement: (earlier: Statement.Fragment) => Statement.Fragment
  /** How many rows that are. */
  readonly rows: number
}

/** A row as it was loaded: its columns by name. `version` and the like are numbers, or text of one. */
export interface Version {
  readonly id: string
  readonly version: number | bigint
}

const unique = (rows: ReadonlyArray<Version>) => [...new Map(rows.map((row) => [row.id, row])).values()]

/** Rows of a table are at these versions until the commit: locked FOR SHARE, ids ascending. */
export const held = (sql: PgClient.PgClient, table: string, versions: ReadonlyArray<Version>): Fence => {
  const rows = unique(versions)
  // Each a parameter of its own: of an array the planner does not know how long it is.
  const pairs = rows.map(({ id, version }) => sql`(${id}::uuid, ${String(version)}::bigint)`)
  return {
    rows: rows.length,
    statement: (earlier) =>
      rows.length === 0
        ? sql`select 1 where false`
        : sql`select 1 from ${sql(table)} where (id, version) in (${sql.join(", ", false)(pairs)}) and ${earlier}
          order by id for share`,
  }
}

/** A row is at this version of `column`, and `also` holds of it; the column is raised, and the row held to the commit. */
export const raised = (
  sql: PgClient.PgClient,
  table: string,
  column: string,
  { id, version }: Version,
  also: Statement.Fragment = sql`true`,
): Fence => ({
  rows: 1,
  statement: (earlier) =>
    sql`update ${sql(table)} set ${sql(column)} = ${sql(column)} + 1
      where id = ${id}::uuid and ${sql(column)} = ${String(version)}::bigint and ${also} and ${earlier} returning 1`,
})

/** `condition` holds in the snapshot of the write: for what no row's version says, and no lock keeps. */
export const holds = (sql: PgClient.PgClient, condition: Statement.Fragment): Fence => ({
  rows: 1,
  statement: (earlier) => sql`select 1 where ${earlier} and ${condition}`,
})

/** Between a load and its write. Nothing happens there in the program; tests order commands here. */
export class BeforeWrite extends Context.Reference<Effect.Effect<void>>("bailiwick/services/platform/BeforeWrite", {
  defaultValue: () => Effect.void,
}) {}

/** Writes what was collected where all `fences` hold, and then runs what was left for after the commit. */
export const writeCollected = Effect.fnUntraced(function* <A>(
  sql: PgClient.PgClient,
  fences: Array.NonEmptyReadonlyArray<Fence>,
  { after, parts, result }: Collected<A>,
) {
  yield* yield* BeforeWrite
  let earlier = sql`true`
  const named = fences.map(({ rows, statement }, i) => {
    const name = sql.literal(`fence_${i}`)
    const fence = sql`${name} as materialized (${statement(earlier)})`
    earlier = sql`(select count(*) from ${name}) = ${sql.literal(String(rows))}`
    return fence
  })
  const written = parts.map(({ name, statement }) => sql`${sql(name)} as (${statement})`)
  const last = fences.length - 1
  yield* sql`with recursive ${sql.join(", ", false)([...named, ...written])}
    select fences_hold((select count(*) from ${sql.literal(`fence_${last}`)}), ${
    sql.literal(String(fences[last]!.rows))
  })`
  yield* after
  return result
})

/**
 * Runs `effect`, which sends nothing and only gathers, and writes what it gathered where all `fences` hold. Fails with a
 * serialization failure where one does not. What was left for after the commit runs after it.
 */
export const writeFenced = <A, E, R>(
  sql: PgClient.PgClient,
  fences: Array.NonEmptyReadonlyArray<Fence>,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.flatMap(collected(effect), (made) => writeCollected(sql, fences, made))

const again = new Set(["DeadlockError", "SerializationError", "UniqueViolation"])

const turns = new Map<string, { readonly one: Semaphore.Semaphore; waiting: number }>()

/** Runs `effect` alone among those of this process that wait for the same turn. */
const inTurn = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const turn = turns.get(name) ?? { one: Semaphore.makeUnsafe(1), waiting: 0 }
      turns.set(name, turn)
      turn.waiting++
      return turn
    }),
    ({ one }) => one.withPermit(effect),
    (turn) =>
      Effect.sync(() => {
        if (--turn.waiting === 0) turns.delete(name)
      }),
  )

export interface Repeated {
  /** What commands lose races about: of those that did, one at a time goes on in this process. */
  readonly turn: string
  /** The command finds out by itself that it was done: one whose connection was lost in the dark is repeated, too. */
  readonly finds: boolean
}

/**
 * Runs a command from its load to its write, and anew where it lost a race (a fence, a deadlock, a unique key), three
 * times; then it is 503. What else goes wrong in SQL is a defect.
 */
export const repeated = <A, E, R>(
  { finds, turn }: Repeated,
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable, R> => {
  const lost = (error: unknown): boolean =>
    error instanceof Conflict ||
    SqlError.isSqlError(error) && (again.has(error.reason._tag) || finds && error.reason._tag === "ConnectionError")
  return Effect.catchIf(command, lost, () => inTurn(turn, Effect.retry(command, { times: 2, while: lost }))).pipe(
    Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable> => {
      if (lost(error)) return Effect.fail(new DependencyUnavailable())
      if (SqlError.isSqlError(error)) return Effect.die(error)
      return Effect.fail(error as Exclude<E, SqlError.SqlError | Conflict>)
    }),
  )
}
