/**
 * A unit of work: what one command changes, which commits as a whole or not at all.
 *
 * `run` runs a command in a transaction. A command that lost a race (a deadlock, a serialization failure, a unique key,
 * a `Conflict`) begins anew with a fresh load, three times; then the answer is 503. Two things wait for the end:
 *
 * - `write` gathers rows that the command adds and does not read again (messages, mails, audit, timers, notices). One
 *   statement writes them all: the cost of a statement is mostly its round trip. The rows are not visible before, not
 *   even to the transaction itself.
 * - `last` gathers items for the last statements before COMMIT, all items of one key together: hot rows (lifecycle
 *   heads, inboxes) are locked as briefly as possible, and in one order (docs/lock-order.md).
 *
 * A `run` within another is a savepoint: its rows are written at its own end, and its items are left to the outer one;
 * where it fails, neither remains. A savepoint of `sql.withTransaction` has no such end, so no command may survive the
 * failure of one that it gathered rows or items in.
 *
 * The other unit of work is a fenced write (FencedWrite.ts, FencedCommand.ts): all of a command is one statement, and
 * nothing is sent before it. R says what an effect may be a part of: `UnitOfWork` stands for either, `InTransaction`
 * for a transaction only.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "./Database.ts"
import { faultPoint, type TransferStep } from "../Failpoints.ts"
import type { Admission, Fence } from "./UnitOfWork/Fence.ts"
import { endRepetitions, isLostRace, type Repeatedly } from "./UnitOfWork/LostRace.ts"
import { addRows, type Kind, partsOf, type Rows, writeParts } from "./UnitOfWork/RowKinds.ts"

export type { Fence } from "./UnitOfWork/Fence.ts"
export { Conflict, type Repeatedly } from "./UnitOfWork/LostRace.ts"
export { insertion, type Kind, type Part, writeParts } from "./UnitOfWork/RowKinds.ts"

interface Ending {
  readonly items: globalThis.Array<unknown>
  readonly run: (items: ReadonlyArray<unknown>) => Effect.Effect<void, SqlError.SqlError>
}

/** A transaction of `run`. */
export interface OpenTransaction {
  readonly _tag: "Transaction"
  readonly rows: Rows
  /** By key. */
  readonly endings: Map<string, Ending>
}

/** A fenced write, from its load until it is sent. */
export interface PreparedWrite {
  readonly _tag: "FencedWrite"
  readonly rows: Rows
  /** In the order in which they are taken. */
  readonly fences: globalThis.Array<Fence>
  /** Taken after `fences`. */
  readonly lastFences: globalThis.Array<Fence>
  /** Effects to run after the commit. */
  readonly after: globalThis.Array<Effect.Effect<void>>
  /** Whether the command lost a race before. */
  readonly repeated: boolean
  /** Emptied by the first load, which checks them. */
  admissions: ReadonlyArray<Admission>
}

/** Required by what is a part of a unit of work: of a transaction of `run`, or of a fenced write. */
export class UnitOfWork extends Context.Service<UnitOfWork, OpenTransaction | PreparedWrite>()(
  "bailiwick/services/platform/database/UnitOfWork",
) {}

/** The transaction of `run` that is open. Signatures name `InTransaction` instead. */
export class Transaction extends Context.Service<Transaction, OpenTransaction>()(
  "bailiwick/services/platform/database/UnitOfWork/Transaction",
) {}

/**
 * Required by what is a part of a transaction only: it sends statements, locks rows, or leaves items for the end. An
 * effect that requires no more than `UnitOfWork` may be a part of it as well, hence the union.
 */
export type InTransaction = UnitOfWork | Transaction

export interface Running {
  /** The command finds out by itself that it was done, so it is repeated after a lost connection as well. */
  readonly finds?: boolean
  /** Names two fault points: `<name>.written`, where only items are left to write, and `<name>.committed`. */
  readonly faults?: "decision" | "notices" | "signal" | `transfer.${TransferStep}`
}

const servicesOf = (unit: OpenTransaction) => Context.make(UnitOfWork, unit).pipe(Context.add(Transaction, unit))

const addItems = (endings: OpenTransaction["endings"], key: string, { items, run }: Ending): void => {
  const known = endings.get(key)
  if (known === undefined) endings.set(key, { items: [...items], run })
  else known.items.push(...items)
}

/** Runs `effect` in the transaction, but in no unit of work: what it writes is written at once. */
const atOnce = (effect: Effect.Effect<void, SqlError.SqlError>) =>
  Effect.updateContext(effect, (context: Context.Context<never>) => Context.omit(UnitOfWork, Transaction)(context))

const writeItems = Effect.fnUntraced(function* ({ endings }: OpenTransaction) {
  for (const key of [...endings.keys()].sort()) {
    const { items, run } = endings.get(key)!
    yield* atOnce(run(items))
  }
})

/**
 * `run` without repetition: a lost race and SQL errors are the caller's. For callers that repeat in a way of their own,
 * and for jobs, which run in a transaction that is open already.
 */
export const runOnce = <A, E, R>(
  command: Effect.Effect<A, E, R>,
  { faults }: Pick<Running, "faults"> = {},
): Effect.Effect<A, E | SqlError.SqlError, Exclude<R, InTransaction> | Database> =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const around = Option.getOrUndefined(yield* Effect.serviceOption(UnitOfWork))
    const outer = around?._tag === "Transaction" ? around : null
    const unit: OpenTransaction = { _tag: "Transaction", rows: new Map(), endings: new Map() }
    const result = yield* sql.withTransaction(Effect.gen(function* () {
      const result = yield* Effect.provideContext(command, servicesOf(unit))
      yield* writeParts(sql, partsOf(unit.rows))
      if (faults !== undefined) yield* faultPoint(`${faults}.written`)
      if (outer === null) yield* writeItems(unit)
      return result
    }))
    if (outer !== null) { for (const [key, ending] of unit.endings) addItems(outer.endings, key, ending) }
    if (faults !== undefined) yield* faultPoint(`${faults}.committed`)
    return result
  })

/**
 * Runs `command` in a transaction, or within the open one, and then writes what it gathered. A command that lost a race
 * begins anew, three times; then the answer is DependencyUnavailable. Any other SQL error is a defect.
 */
export const run = <A, E, R>(
  command: Effect.Effect<A, E, R>,
  { finds = false, ...how }: Running = {},
): Effect.Effect<A, Repeatedly<E>, Exclude<R, InTransaction> | Database> =>
  endRepetitions(
    Effect.retry(runOnce(command, how), { times: 3, while: (error) => isLostRace(error, finds) }),
    finds,
  )

/** Writes items at the end of the unit of work, with its other gathered rows; at once where there is none. */
export const write = <A>(
  sql: PgClient.PgClient,
  kind: Kind<A>,
  items: ReadonlyArray<A>,
): Effect.Effect<void, SqlError.SqlError> =>
  Array.isReadonlyArrayNonEmpty(items)
    ? Effect.flatMap(
      Effect.serviceOption(UnitOfWork),
      (unit) =>
        Option.isNone(unit)
          ? writeParts(sql, kind.parts(items))
          : Effect.sync(() => addRows(unit.value.rows, kind, items)),
    )
    : Effect.void

/** Leaves items for the end of the transaction, where `run` gets all items of the key at once. */
export const last = <A>(
  key: string,
  items: ReadonlyArray<A>,
  run: (items: ReadonlyArray<A>) => Effect.Effect<void, SqlError.SqlError>,
): Effect.Effect<void, never, Transaction> =>
  Effect.map(
    Transaction,
    ({ endings }) => addItems(endings, key, { items: [...items], run: (all) => run(all as ReadonlyArray<A>) }),
  )

/** Runs `effect` after the commit of the unit of work, or of any other transaction; at once where there is neither. */
export const afterCommit = (sql: PgClient.PgClient, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(Effect.serviceOption(UnitOfWork), (found) => {
    const unit = Option.getOrUndefined(found)
    return unit?._tag === "FencedWrite" ? Effect.sync(() => void unit.after.push(effect)) : sql.afterCommit(effect)
  })

/** Runs one of two effects, by what the unit of work is. */
export const either = <A, E, R, A2, E2, R2>({ fencedWrite, transaction }: {
  readonly transaction: Effect.Effect<A, E, R>
  readonly fencedWrite: Effect.Effect<A2, E2, R2>
}): Effect.Effect<A | A2, E | E2, Exclude<R, InTransaction> | R2 | UnitOfWork> =>
  Effect.flatMap(
    UnitOfWork,
    (unit): Effect.Effect<A | A2, E | E2, Exclude<R, InTransaction> | R2> =>
      unit._tag === "Transaction" ? Effect.provideContext(transaction, servicesOf(unit)) : fencedWrite,
  )
