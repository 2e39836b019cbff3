/** Races between commands: which errors mean that one was lost, and what is answered when it is lost to the end. */
import { Data, Effect } from "effect"
import { SqlError } from "effect/sql"
import { DependencyUnavailable } from "../../../../schemas/problems/HttpProblems.ts"

/** The loaded state is known to be out of date before anything is written. */
export class Conflict extends Data.TaggedError("Conflict") {}

const again = new Set(["DeadlockError", "SerializationError", "UniqueViolation"])

/**
 * Whether a command lost a race, and so begins anew with a fresh load. `finds`: the command finds out by itself that it
 * was done, so it begins anew after a lost connection as well.
 */
export const isLostRace = (error: unknown, finds: boolean): boolean =>
  error instanceof Conflict ||
  SqlError.isSqlError(error) && (again.has(error.reason._tag) || finds && error.reason._tag === "ConnectionError")

/** The errors of a command that is repeated. */
export type Repeatedly<E> = Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable

/** Ends the repetitions of a command: a race that was lost to the end is a 503, any other SQL error a defect. */
export const endRepetitions = <A, E, R>(
  command: Effect.Effect<A, E, R>,
  finds: boolean,
): Effect.Effect<A, Repeatedly<E>, R> =>
  Effect.catch(command, (error): Effect.Effect<never, Repeatedly<E>> => {
    if (isLostRace(error, finds)) return Effect.fail(new DependencyUnavailable())
    if (SqlError.isSqlError(error)) return Effect.die(error)
    return Effect.fail(error as Repeatedly<E>)
  })
