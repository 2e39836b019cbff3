/**
 * Runs commands of two round trips: `load` reads, in one statement that also admits the caller, everything that the
 * command decides on; the command decides, gathers the rows that it writes (Gathered.ts) and names the fences under
 * which these may be written (FencedWrite.ts); `fenced` writes all of it by one statement.
 *
 * The same command can run in a transaction of `Transact`. There its load sees what the transaction has written, a
 * fence is checked at once and keeps its rows locked to the end, and a fence that is missed makes the transaction begin
 * anew.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Exit } from "effect"
import { SqlError, type Statement } from "effect/sql"
import type { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import type { Database } from "./Database.ts"
import { faultPoint } from "../Failpoints.ts"
import { type Conflict, type Fence, repeated, writeCollected } from "./FencedWrite.ts"
import { type Collected, collected, gathered, writeParts } from "./Gathered.ts"
import { inTransaction } from "./Transact.ts"

/** A check of the caller that the command's load makes in the same statement. */
export interface Admission {
  /** A SELECT of at most one row, with column names that no other part of the load has. */
  readonly statement: Statement.Fragment
  /** Checks the row's columns, which are null where there was no row. `fenced` fails with the error of this. */
  readonly judge: (row: Readonly<Record<string, unknown>>) => Effect.Effect<void, NotAdmitted>
}

/** The command was not decided; `answer` is for the code that named the admission. */
export class NotAdmitted {
  readonly _tag = "NotAdmitted"
  readonly answer: unknown
  constructor(answer: unknown) {
    this.answer = answer
  }
}

/** The command turned out to need more than one statement: the caller runs it in a transaction instead. */
export class NeedsTransaction {
  readonly _tag = "NeedsTransaction"
}

/** A command from its load to its write. */
interface Attempt {
  readonly repeated: boolean
  readonly fences: globalThis.Array<Fence>
  readonly last: globalThis.Array<Fence>
  /** Emptied by the first load, which checks them. */
  admissions: ReadonlyArray<Admission>
}

class Attempts
  extends Context.Reference<Attempt | null>("bailiwick/services/platform/database/FencedCommand/Attempts", {
    defaultValue: () => null,
  }) {}

/** Whether the command is a fenced write, outside any transaction. */
export const isFenced: Effect.Effect<boolean> = Effect.map(Attempts, (attempt) => attempt !== null)

/** Whether the command lost a race before: remembered state may have been the reason. */
export const isRepeated: Effect.Effect<boolean> = Effect.map(Attempts, (attempt) => attempt?.repeated ?? false)

/** Checks a fence at once, in an open transaction. */
const ask = (sql: PgClient.PgClient, fence: Fence) =>
  writeCollected(sql, [fence], { result: undefined, parts: [], after: Effect.void })

const add = (to: "fences" | "last") => (sql: PgClient.PgClient, ...fences: ReadonlyArray<Fence>) =>
  Effect.flatMap(Attempts, (attempt): Effect.Effect<void, SqlError.SqlError> => {
    if (attempt === null) return Effect.forEach(fences, (fence) => ask(sql, fence), { discard: true })
    attempt[to].push(...fences)
    return Effect.void
  })

/** Adds fences without which the command is not written; they are taken in the order in which they are added. */
export const fence = add("fences")

/** The same for fences that are taken after all others: for rows that many commands need. */
export const fenceLast = add("last")

/** Rows that a command decides on, in an order, and the lock under which they must be unchanged at the write. */
export interface Question {
  /** A whole SELECT, with its order. */
  readonly rows: Statement.Fragment
  readonly lock: Statement.Fragment
}

/** SQL of a question's answer: its rows as JSON; equal answers have equal texts. */
export const answerTo = (sql: PgClient.PgClient, { rows }: Pick<Question, "rows">): Statement.Fragment =>
  sql`(select coalesce(json_agg(q)::text, '[]') from (${rows}) q)`

/** A fence: the question has this answer when the command is written, and its rows stay locked to the commit. */
export const unchanged = (sql: PgClient.PgClient, { lock, rows }: Question, answer: string): Fence => ({
  rows: 1,
  statement: (earlier) =>
    sql`select 1 where case when ${earlier} then ${answerTo(sql, { rows: sql`${rows} ${lock}` })} = ${answer} end`,
})

/** A fence of one row: `statement` inserts, changes or locks the row under the given condition, and returns a row. */
export const one = (statement: Fence["statement"]): Fence => ({ rows: 1, statement })

/** A fence that inserts one row, given as JSON; `columns` are the written columns' types. Missed on a conflict. */
export const newRow = <const Columns extends Readonly<Record<string, string>>>(
  sql: PgClient.PgClient,
  table: string,
  columns: Columns,
) => {
  const names = sql.literal(Object.keys(columns).join(", "))
  const typed = sql.literal(Object.entries(columns).map(([name, type]) => `${name} ${type}`).join(", "))
  return (row: { readonly [Column in keyof Columns]: unknown }): Fence => {
    const known = Object.fromEntries(Object.keys(columns).map((name) => [name, row[name]]))
    return one((earlier) =>
      sql`insert into ${sql(table)} (${names})
        select ${names} from json_to_record(${JSON.stringify(known)}::json) r(${typed}) where ${earlier}
        on conflict do nothing returning 1`
    )
  }
}

/**
 * Loads the row that a command decides on, and checks the `admissions` in the same statement. Where the statement
 * selects no row, all columns are null.
 */
export const load = Effect.fnUntraced(function* <Row extends object>(
  sql: PgClient.PgClient,
  statement: Statement.Fragment,
): Effect.fn.Return<Row, SqlError.SqlError> {
  const attempt = yield* Attempts
  const admissions = attempt?.admissions ?? []
  const joined = admissions.map(({ statement }, i) => sql`left join (${statement}) ${sql(`admitted_${i}`)} on true`)
  const columns = admissions.map((_, i) => sql`${sql(`admitted_${i}`)}.*,`)
  const [row] = yield* sql<Row & Record<string, unknown>>`
    select ${sql.join(" ", false)([...columns, sql`loaded.*`])}
    from (select) always ${sql.join(" ", false)([...joined, sql`left join lateral (${statement}) loaded on true`])}`
  if (attempt !== null) attempt.admissions = []
  // A defect, caught by `fenced`: in a transaction there are no admissions, so commands do not declare NotAdmitted.
  for (const { judge } of admissions) yield* Effect.catch(judge(row!), Effect.die)
  return row!
})

/**
 * Runs `effect` in a transaction of its own, which commits whatever becomes of the fenced command around it; in the
 * command's transaction where that has one. For changes that were due before the command, such as an expiry.
 */
export const apart = <A, E, R>(
  sql: PgClient.PgClient,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, R | Database> =>
  Effect.flatMap(
    Attempts,
    (attempt): Effect.Effect<A, E | SqlError.SqlError, R | Database> =>
      attempt === null ? effect : Effect.provideService(inTransaction(gathered(sql, effect)), Attempts, null),
  )

/** Where a command ended without a load, checks its admissions before its result counts. */
const admitted = <A, E, R>(sql: PgClient.PgClient, command: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Effect.exit(command),
    (exit) =>
      Effect.flatMap(Attempts, (attempt) =>
        attempt === null || attempt.admissions.length === 0 || Exit.hasInterrupts(exit)
          ? exit
          : Effect.andThen(load(sql, sql`select`), exit)),
  )

const writeUnfenced = Effect.fnUntraced(function* <A>(sql: PgClient.PgClient, { after, parts, result }: Collected<A>) {
  if (parts.length > 0) yield* writeParts(sql, parts)
  yield* after
  return result
})

export interface Fenced<F = never> {
  /** The name of what commands lose races about (FencedWrite.ts). */
  readonly turn: string
  readonly admissions: ReadonlyArray<Admission>
  /** The refusal that an error of the write means for the caller; null where the caller is not at fault. */
  readonly refused?: ((error: SqlError.SqlError) => F | null) | undefined
}

/** Runs a command from its load to its write; a command that lost a race begins anew, three times. */
export const fenced = <A, E, R, F = never>(
  sql: PgClient.PgClient,
  { admissions, refused = () => null, turn }: Fenced<F>,
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, Exclude<E | F, SqlError.SqlError | Conflict> | DependencyUnavailable | NotAdmitted, R> =>
  Effect.suspend(() => {
    let attempts = 0
    const once = Effect.gen(function* () {
      const attempt: Attempt = { repeated: attempts++ > 0, fences: [], last: [], admissions }
      const made = yield* collected(Effect.provideService(admitted(sql, command), Attempts, attempt))
      yield* faultPoint("decision.written")
      const fences = [...attempt.fences, ...attempt.last]
      return Array.isArrayNonEmpty(fences) ? yield* writeCollected(sql, fences, made) : yield* writeUnfenced(sql, made)
    })
    const tried = Effect.catch(
      once,
      (error): Effect.Effect<never, E | F | SqlError.SqlError> => {
        const refusal = SqlError.isSqlError(error) ? refused(error) : null
        return refusal === null ? Effect.fail(error) : Effect.fail(refusal)
      },
    )
    return Effect.catchDefect(
      repeated({ turn, finds: false }, tried),
      (defect): Effect.Effect<never, NotAdmitted> =>
        defect instanceof NotAdmitted ? Effect.fail(defect) : Effect.die(defect),
    )
  })
