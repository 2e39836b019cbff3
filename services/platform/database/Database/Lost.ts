/**
 * A connection that is lost within a transaction. Effect ends a transaction whose ROLLBACK cannot be sent, or whose COMMIT
 * was not answered, in a defect; and what loops over transactions ends with it, for good. But the server rolls back what
 * lost its connection, and of a COMMIT without an answer nobody knows more than of any other lost statement: both are
 * failures like any other.
 */
import { Cause, Effect } from "effect"
import { SqlError } from "effect/sql"

const lossOf = <E>(cause: Cause.Cause<E>): SqlError.SqlError | null => {
  if (Cause.hasInterrupts(cause)) return null
  for (const reason of cause.reasons) {
    if (Cause.isDieReason(reason) && SqlError.isSqlError(reason.defect)) return reason.defect
  }
  return null
}

/**
 * A transaction whose loss is a failure, whatever it failed of before. What was interrupted, or died of anything else,
 * stays so.
 */
export const lossFails = <A, E, R>(
  transaction: Effect.Effect<A, E | SqlError.SqlError, R>,
): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.catchCause(transaction, (cause) => {
    const loss = lossOf(cause)
    return loss === null ? Effect.failCause(cause) : Effect.fail(loss)
  })
