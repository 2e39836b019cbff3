/** Work that several processes do at their start, one after another. */
import { Effect, Schedule } from "effect"
import { SqlError } from "effect/sql"

/**
 * Retries until the process before is done, which on a slow machine takes longer than a statement may wait for a lock.
 */
export const inTurn = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.retry(work, {
    times: 240,
    schedule: Schedule.spaced("500 millis"),
    while: (error) => SqlError.isSqlError(error) && error.reason._tag === "LockTimeoutError",
  })
