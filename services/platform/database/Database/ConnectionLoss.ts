/**
 * Turns the loss of a connection within a transaction into a failure. Effect ends a transaction whose ROLLBACK cannot
 * be sent, or whose COMMIT was not answered, in a defect, which would end a worker's loop for good. But the server
 * rolls back a transaction whose connection is lost, and a COMMIT without an answer is as uncertain as any other lost
 * statement: both are failures like any other.
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
 * Makes the loss of a transaction's connection a failure, whatever the transaction failed with before. Interruptions
 * and other defects stay.
 */
export const lossFails = <A, E, R>(
  transaction: Effect.Effect<A, E | SqlError.SqlError, R>,
): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.catchCause(transaction, (cause) => {
    const loss = lossOf(cause)
    return loss === null ? Effect.failCause(cause) : Effect.fail(loss)
  })
