/**
 * Runs one command in one transaction, with statements that go last.
 *
 * A command that lost a race (a deadlock, a serialization failure, a unique key, a `Conflict`) begins anew with a fresh
 * load, three times; then the answer is 503. Items given to `atTheEnd` are written by the last statements before
 * COMMIT, all items of one key together: hot rows (lifecycle heads) are locked as briefly as possible, and in one
 * order.
 */
import { Context, Effect } from "effect"
import { SqlError } from "effect/sql"
import { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import { Database } from "./Database.ts"
import { Conflict } from "./FencedWrite.ts"

interface Ending {
  readonly items: Array<unknown>
  readonly run: (items: ReadonlyArray<unknown>) => Effect.Effect<void, SqlError.SqlError>
}

class Endings
  extends Context.Reference<Map<string, Ending> | null>("bailiwick/services/platform/database/Transact/Endings", {
    defaultValue: () => null,
  }) {}

const again = new Set(["DeadlockError", "SerializationError", "UniqueViolation"])

const mayRepeat = (error: unknown): boolean =>
  error instanceof Conflict || SqlError.isSqlError(error) && again.has(error.reason._tag)

const add = (endings: Map<string, Ending>, key: string, items: ReadonlyArray<unknown>, run: Ending["run"]) => {
  const known = endings.get(key)
  if (known === undefined) endings.set(key, { items: [...items], run })
  else known.items.push(...items)
}

/** Runs `command` in a transaction, or in the open one, and then what was given to `atTheEnd`. */
export const inTransaction = <A, E, R>(
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, R | Database> =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const outer = yield* Endings
    if (outer !== null) {
      // An inner command hands its items to the outer one, unless it is rolled back.
      const inner: Map<string, Ending> = new Map()
      const result = yield* sql.withTransaction(Effect.provideService(command, Endings, inner))
      for (const [key, { items, run }] of inner) add(outer, key, items, run)
      return result
    }
    return yield* sql.withTransaction(Effect.gen(function* () {
      const endings = new Map<string, Ending>()
      const result = yield* Effect.provideService(command, Endings, endings)
      for (const key of [...endings.keys()].sort()) {
        const { items, run } = endings.get(key)!
        yield* run(items)
      }
      return result
    }))
  })

/** `inTransaction`, repeated where the command lost a race; any other SQL error is a defect. */
export const transact = <A, E, R>(
  command: Effect.Effect<A, E, R>,
): Effect.Effect<A, Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable, R | Database> =>
  inTransaction(command).pipe(
    Effect.retry({ times: 3, while: mayRepeat }),
    Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable> => {
      if (mayRepeat(error)) return Effect.fail(new DependencyUnavailable())
      if (SqlError.isSqlError(error)) return Effect.die(error)
      return Effect.fail(error as Exclude<E, SqlError.SqlError | Conflict>)
    }),
  )

/** Leaves items for the end of the transaction, where `run` gets all items of the key at once; a defect outside one. */
export const atTheEnd = <A>(
  key: string,
  items: ReadonlyArray<A>,
  run: (items: ReadonlyArray<A>) => Effect.Effect<void, SqlError.SqlError>,
): Effect.Effect<void> =>
  Effect.flatMap(Endings, (endings) => {
    if (endings === null) return Effect.die(new Error(`${key}: only in a transaction of Transact`))
    add(endings, key, items, (all) => run(all as ReadonlyArray<A>))
    return Effect.void
  })
