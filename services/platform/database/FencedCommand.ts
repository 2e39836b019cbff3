/**
 * Commands of two round trips that load for themselves: `load` reads, in one statement with what admits the caller,
 * all that is decided on; the command decides, gathers what it writes (Gathered.ts) and names the fences under which it
 * may be written (FencedWrite.ts); `fenced` writes all of it by one statement.
 *
 * The same command runs in a transaction of `Transact`, too. There its load sees what the transaction has written, a
 * fence is asked at once and keeps its rows locked to the end, and one that is missed makes the transaction begin anew.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Exit } from "effect"
import { SqlError, type Statement } from "effect/sql"
import type { DependencyUnavailable } from "../../../schemas/problems/Floor.ts"
import type { Database } from "./Database.ts"
import { faultPoint } from "../Faults.ts"
import { type Conflict, type Fence, repeated, writeCollected } from "./FencedWrite.ts"
import { type Collected, collected, gathered, writeParts } from "./Gathered.ts"
import { inTransaction } from "./Transact.ts"

/** What the first statement of a command asks beside what the command itself loads. */
export interface Admission {
  /** A SELECT of at most one row, whose columns nothing else is called. */
  readonly statement: Statement.Fragment
  /** Looks at its columns, null where there was no row. What it fails with is what `fenced` fails with. */
  readonly judge: (row: Readonly<Record<string, unknown>>) => Effect.Effect<void, NotAdmitted>
}

/** The command was not decided; `answer` is for the one that asked for the admission. */
export class NotAdmitted {
  readonly _tag = "NotAdmitted"
  readonly answer: unknown
  constructor(answer: unknown) {
    this.answer = answer
  }
}

/** The command, as it turned out, is more than one statement writes: it runs in a transaction instead. */
export class NeedsTransaction {
  readonly _tag = "NeedsTransaction"
}

/** A command from its load to its write. */
interface Attempt {
  readonly repeated: boolean
  readonly fences: globalThis.Array<Fence>
  readonly last: globalThis.Array<Fence>
  /** Left by the first load. */
  admissions: ReadonlyArray<Admission>
}

class Attempts
  extends Context.Reference<Attempt | null>("bailiwick/services/platform/database/FencedCommand/Attempts", {
    defaultValue: () => null,
  }) {}

/** Whether the command is written by a statement of its own, in no transaction. */
export const isFenced: Effect.Effect<boolean> = Effect.map(Attempts, (attempt) => attempt !== null)

/** Whether the command lost a race before: what was remembered may be why. */
export const isRepeated: Effect.Effect<boolean> = Effect.map(Attempts, (attempt) => attempt?.repeated ?? false)

/** In an open transaction a fence stands as soon as it is named. */
const ask = (sql: PgClient.PgClient, fence: Fence) =>
  writeCollected(sql, [fence], { result: undefined, parts: [], after: Effect.void })

const add = (to: "fences" | "last") => (sql: PgClient.PgClient, ...fences: ReadonlyArray<Fence>) =>
  Effect.flatMap(Attempts, (attempt): Effect.Effect<void, SqlError.SqlError> => {
    if (attempt === null) return Effect.forEach(fences, (fence) => ask(sql, fence), { discard: true })
    attempt[to].push(...fences)
    return Effect.void
  })

/** The command may be written only where these hold, taken in the order in which they are named. */
export const fence = add("fences")

/** The same, taken after all others: for rows that everybody needs. */
export const fenceLast = add("last")

/** Something that is decided on: rows in an order, and how they are locked where they must stay as they were. */
export interface Question {
  /** A whole SELECT, with its order. */
  readonly rows: Statement.Fragment
  readonly lock: Statement.Fragment
}

/** SQL of a question's answer: its rows as JSON, the same text where it is the same answer. */
export const answerTo = (sql: PgClient.PgClient, { rows }: Pick<Question, "rows">): Statement.Fragment =>
  sql`(select coalesce(json_agg(q)::text, '[]') from (${rows}) q)`

/** The question still has this answer when the command is written; its rows stay locked until that is committed. */
export const unchanged = (sql: PgClient.PgClient, { lock, rows }: Question, answer: string): Fence => ({
  rows: 1,
  statement: (earlier) =>
    sql`select 1 where case when ${earlier} then ${answerTo(sql, { rows: sql`${rows} ${lock}` })} = ${answer} end`,
})

/** `statement` inserts, changes or locks one row under the condition that it is given, and returns a row where it did. */
export const one = (statement: Fence["statement"]): Fence => ({ rows: 1, statement })

/** Adds one row, as JSON has it; `columns` are the types of those that are written. Missed where another stands in its way. */
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
 * The row that a command is decided on, of one statement that `admissions` are asked by, too. A statement that selects
 * none gives one of nulls.
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
  // Commands do not name it among their errors, since they have none of it in a transaction.
  for (const { judge } of admissions) yield* Effect.catch(judge(row!), Effect.die)
  return row!
})

/**
 * Runs in a transaction of its own, whatever the command around it comes to; where that runs in one, in that. For what was
 * so before the command, and only has to be written down.
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

/** However a command ends that has loaded nothing, what admits it is asked first. */
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
  /** What commands lose races about (FencedWrite.ts). */
  readonly turn: string
  readonly admissions: ReadonlyArray<Admission>
  /** What the command is refused with because its write fails so; null where that is none of the caller's fault. */
  readonly refused?: ((error: SqlError.SqlError) => F | null) | undefined
}

/** Runs a command from its load to its write, anew where it lost a race, three times. */
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
