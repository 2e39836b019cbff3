/**
 * Runs commands of two round trips: `load` reads, in one statement that also admits the caller, everything that the
 * command decides on; the command decides, gathers the rows that it writes (UnitOfWork.ts) and names the fences under
 * which these may be written (FencedWrite.ts); `fenced` writes all of it by one statement.
 *
 * The same command can run in a transaction of `run`: it requires `UnitOfWork`, which either gives. In a transaction
 * its load sees what the transaction has written, a fence is checked at once and keeps its rows locked to the end, and
 * a fence that is missed makes the transaction begin anew.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Exit } from "effect"
import { SqlError, type Statement } from "effect/sql"
import type { Database } from "./Database.ts"
import { faultPoint } from "../Failpoints.ts"
import { preparedWrite, repeated, writePrepared, writeWhere } from "./FencedWrite.ts"
import {
  either,
  type Fence,
  type InTransaction,
  type PreparedWrite,
  type Repeatedly,
  runOnce,
  UnitOfWork,
} from "./UnitOfWork.ts"
import { type Admission, NotAdmitted } from "./UnitOfWork/Fence.ts"

export { type Admission, NotAdmitted } from "./UnitOfWork/Fence.ts"

/** The command turned out to need more than one statement: the caller runs it in a transaction instead. */
export class NeedsTransaction {
  readonly _tag = "NeedsTransaction"
}

/** Whether the command is a fenced write, outside any transaction. */
export const isFenced: Effect.Effect<boolean, never, UnitOfWork> = Effect.map(
  UnitOfWork,
  ({ _tag }) => _tag === "FencedWrite",
)

/** Whether the command, as a fenced write, lost a race before: remembered state may have been the reason. */
export const isRepeated: Effect.Effect<boolean, never, UnitOfWork> = Effect.map(
  UnitOfWork,
  (unit) => unit._tag === "FencedWrite" && unit.repeated,
)

/** Runs a part of a command that only a transaction can have; a fenced write fails with NeedsTransaction instead. */
export const transactionOnly = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | NeedsTransaction, Exclude<R, InTransaction> | UnitOfWork> =>
  either({ transaction: effect, fencedWrite: Effect.fail(new NeedsTransaction()) })

const add = (to: "fences" | "lastFences") => (sql: PgClient.PgClient, ...fences: ReadonlyArray<Fence>) =>
  Effect.flatMap(UnitOfWork, (unit): Effect.Effect<void, SqlError.SqlError> => {
    if (unit._tag === "Transaction") {
      return Effect.forEach(fences, (fence) => writeWhere(sql, [fence]), { discard: true })
    }
    unit[to].push(...fences)
    return Effect.void
  })

/** Adds fences without which the command is not written; they are taken in the order in which they are added. */
export const fence = add("fences")

/** The same for fences that are taken after all others: for rows that many commands need. */
export const fenceLast = add("lastFences")

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
): Effect.fn.Return<Row, SqlError.SqlError, UnitOfWork> {
  const unit = yield* UnitOfWork
  const admissions = unit._tag === "FencedWrite" ? unit.admissions : []
  const joined = admissions.map(({ statement }, i) => sql`left join (${statement}) ${sql(`admitted_${i}`)} on true`)
  const columns = admissions.map((_, i) => sql`${sql(`admitted_${i}`)}.*,`)
  const [row] = yield* sql<Row & Record<string, unknown>>`
    select ${sql.join(" ", false)([...columns, sql`loaded.*`])}
    from (select) always ${sql.join(" ", false)([...joined, sql`left join lateral (${statement}) loaded on true`])}`
  if (unit._tag === "FencedWrite") unit.admissions = []
  // A defect, caught by `fenced`: in a transaction there are no admissions, so commands do not declare NotAdmitted.
  for (const { judge } of admissions) yield* Effect.catch(judge(row!), Effect.die)
  return row!
})

/**
 * Runs `effect` in a transaction of its own, which commits whether or not the fenced command around it does; in the
 * command's transaction where that has one. For changes that were due before the command, such as an expiry.
 */
export const apart = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, Exclude<R, InTransaction> | UnitOfWork | Database> =>
  either({ transaction: effect, fencedWrite: runOnce(effect) })

/** Where a command ended without a load, checks its admissions before its result counts. */
const admitted = <A, E, R>(sql: PgClient.PgClient, unit: PreparedWrite, command: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Effect.exit(command),
    (exit): Effect.Effect<A, E | SqlError.SqlError, UnitOfWork> =>
      unit.admissions.length === 0 || Exit.hasInterrupts(exit) ? exit : Effect.andThen(load(sql, sql`select`), exit),
  )

export interface Fenced<F = never> {
  /** The name of what commands lose races about (FencedWrite.ts). */
  readonly turn: string
  readonly admissions: ReadonlyArray<Admission>
  /** Whether the command ends with its decision: nothing is written. */
  readonly dryRun?: boolean | undefined
  /** The refusal that an error of the write means for the caller; null where the caller is not at fault. */
  readonly refused?: ((error: SqlError.SqlError) => F | null) | undefined
}

/** Runs a command from its load to its write; a command that lost a race begins anew, three times. */
export const fenced = <A, E, R, F = never>(
  sql: PgClient.PgClient,
  { admissions, dryRun = false, refused = () => null, turn }: Fenced<F>,
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, Repeatedly<E | F> | NotAdmitted, Exclude<R, UnitOfWork>> =>
  Effect.suspend(() => {
    let attempts = 0
    const once = Effect.suspend(() => {
      const unit: PreparedWrite = { ...preparedWrite(), repeated: attempts++ > 0, admissions }
      const decision = admitted(sql, unit, command)
      return dryRun
        ? Effect.provideService(decision, UnitOfWork, unit)
        : writePrepared(sql, unit, Effect.tap(decision, () => faultPoint("decision.written")))
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
