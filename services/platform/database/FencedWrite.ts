/**
 * Commands as load · decide · write: one statement reads, without locks, everything that the decision depends on; a
 * pure function decides; one statement, which is its own transaction, writes the result.
 *
 * Rows are locked inside the write only, and PostgreSQL rechecks a row after a wait for its lock, but no other row. So
 * a decision depends on fences: columns that every change of a row raises, compared with the loaded values. A command
 * that counts rows fences a counter that each writer of such a row raises; a count inside the write would read the old
 * snapshot. Where one fence is missed the statement fails as a serialization failure, nothing of it is kept, and the
 * command begins anew with a fresh load.
 *
 * Fences are taken in the order in which they are given, each only once the one before is complete: callers follow the
 * global order of locks, as transactions do. Gathered rows (UnitOfWork.ts) are written after the last fence.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Semaphore } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { type Fence, type Part, type PreparedWrite, type Repeatedly, UnitOfWork, writeParts } from "./UnitOfWork.ts"
import { endRepetitions, isLostRace } from "./UnitOfWork/LostRace.ts"
import { partsOf } from "./UnitOfWork/RowKinds.ts"

/** The id and version of a loaded row. */
export interface Version {
  readonly id: string
  readonly version: number | bigint
}

const unique = (rows: ReadonlyArray<Version>) => [...new Map(rows.map((row) => [row.id, row])).values()]

/** A fence: rows of a table are at these versions until the commit: locked FOR SHARE, ids ascending. */
export const held = (sql: PgClient.PgClient, table: string, versions: ReadonlyArray<Version>): Fence => {
  const rows = unique(versions)
  // Each value is a parameter of its own: the planner does not know the length of an array.
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

/** A fence: `column` of a row has this version, and `also` holds; raises the column and locks the row to the commit. */
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

/** A fence: `condition` holds in the write's snapshot; for conditions that no row's version and no lock can express. */
export const holds = (sql: PgClient.PgClient, condition: Statement.Fragment): Fence => ({
  rows: 1,
  statement: (earlier) => sql`select 1 where ${earlier} and ${condition}`,
})

/** A hook between a load and its write. The program does nothing there; tests use it to order commands. */
export class BeforeWrite
  extends Context.Reference<Effect.Effect<void>>("bailiwick/services/platform/database/FencedWrite/BeforeWrite", {
    defaultValue: () => Effect.void,
  }) {}

/** Writes parts where all `fences` hold. */
export const writeWhere = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  fences: Array.NonEmptyReadonlyArray<Fence>,
  parts: ReadonlyArray<Part> = [],
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
})

/** A fenced write that has gathered nothing yet, but for the first of its fences. */
export const preparedWrite = (fences: ReadonlyArray<Fence> = []): PreparedWrite => ({
  _tag: "FencedWrite",
  rows: new Map(),
  fences: [...fences],
  lastFences: [],
  after: [],
  repeated: false,
  admissions: [],
})

/**
 * Runs `effect` as a part of `unit`, outside any transaction, and writes what was gathered where all fences hold.
 * Effects that were left for after the commit run after it.
 */
export const writePrepared = Effect.fnUntraced(function* <A, E, R>(
  sql: PgClient.PgClient,
  unit: PreparedWrite,
  effect: Effect.Effect<A, E, R>,
) {
  const result = yield* Effect.provideService(effect, UnitOfWork, unit)
  const parts = partsOf(unit.rows)
  const fences = [...unit.fences, ...unit.lastFences]
  yield* Array.isArrayNonEmpty(fences) ? writeWhere(sql, fences, parts) : writeParts(sql, parts)
  yield* Effect.all(unit.after, { discard: true })
  return result
})

/**
 * Runs `effect`, which only gathers rows and sends no statement, and writes them where all `fences` hold. Fails with a
 * serialization failure where one does not. Effects that were left for after the commit run after it.
 */
export const writeFenced = <A, E, R>(
  sql: PgClient.PgClient,
  fences: Array.NonEmptyReadonlyArray<Fence>,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, Exclude<R, UnitOfWork>> =>
  Effect.suspend(() => writePrepared(sql, preparedWrite(fences), effect))

const turns = new Map<string, { readonly one: Semaphore.Semaphore; waiting: number }>()

/** Runs `effect` while no other effect of this process runs under the same turn. */
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
  /** The name of what commands lose races about: of those that lost, one at a time is repeated in this process. */
  readonly turn: string
  /** The command finds out by itself that it was done, so it may be repeated after a lost connection as well. */
  readonly finds: boolean
}

/**
 * Runs a command from its load to its write. A command that lost a race (a fence, a deadlock, a unique key) begins
 * anew, three times; then the answer is 503. Any other SQL error is a defect.
 */
export const repeated = <A, E, R>(
  { finds, turn }: Repeated,
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, Repeatedly<E>, R> => {
  const lost = (error: unknown) => isLostRace(error, finds)
  const again = Effect.suspend(() => inTurn(turn, Effect.retry(command, { times: 2, while: lost })))
  return endRepetitions(Effect.catchIf(command, lost, () => again), finds)
}
