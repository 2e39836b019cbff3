/**
 * Runs a command in one transaction; its messages, mails, audit, timers and notices are one statement at the end.
 *
 * After a lost race (a deadlock, a serialization failure, a changed version) the command is repeated with a fresh load,
 * up to three times; then it fails with 503. It is also repeated after a lost connection: a command's id shows whether
 * its first run was committed.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { SqlError } from "effect/sql"
import { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import { faultPoint, type TransferStep } from "../../platform/Failpoints.ts"
import { Conflict } from "../../platform/database/FencedWrite.ts"
import { gathered } from "../../platform/database/Gathered.ts"

const again = new Set(["DeadlockError", "SerializationError", "ConnectionError", "UniqueViolation"])

const mayRepeat = (error: unknown): boolean =>
  error instanceof Conflict || SqlError.isSqlError(error) && again.has(error.reason._tag)

export const transact =
  (sql: PgClient.PgClient) =>
  <A, E, R>(step: TransferStep, command: Effect.Effect<A, E, R>): Effect.Effect<
    A,
    Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable,
    R
  > =>
    sql.withTransaction(Effect.tap(gathered(sql, command), () => faultPoint(`transfer.${step}.written`))).pipe(
      Effect.tap(() => faultPoint(`transfer.${step}.committed`)),
      Effect.retry({ times: 3, while: mayRepeat }),
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError.SqlError | Conflict> | DependencyUnavailable> => {
        if (mayRepeat(error)) return Effect.fail(new DependencyUnavailable())
        if (SqlError.isSqlError(error)) return Effect.die(error)
        return Effect.fail(error as Exclude<E, SqlError.SqlError | Conflict>)
      }),
    )
