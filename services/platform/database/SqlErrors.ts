/** Tells SQL errors that a statement's values caused from errors of the server. */
import { Predicate } from "effect"
import type { SqlError } from "effect/sql"

/**
 * Whether the values were at fault: PostgreSQL's classes 22 (data exception) and 54 (program limit exceeded), or a
 * value that could not be encoded. Any other error may pass, or is this program's, and no message must be lost for it.
 */
export const isDataFault = (error: SqlError.SqlError): boolean => {
  let cause: unknown = error.reason
  for (let depth = 0; depth < 5; depth++) {
    if (Predicate.hasProperty(cause, "_tag") && cause._tag === "PgTypesCodecError") return true
    if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return /^(22|54)/.test(cause.code)
    if (!Predicate.hasProperty(cause, "cause")) return false
    cause = cause.cause
  }
  return false
}

/** SQLSTATE classes of a server that is away, busy, full or read-only, and of conflicts between transactions. */
const passing = /^(08|25|40|53|55|57|58)/

/** Whether the same statement may succeed later: neither the statement nor its values are at fault. */
export const mayPass = ({ reason }: SqlError.SqlError): boolean => {
  if (reason.isRetryable) return true
  let cause: unknown = reason
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause"); depth++) {
    cause = cause.cause
    if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return passing.test(cause.code)
  }
  return false
}

/** Whether the statement waited too long for a lock on a row of the table, or on a row that is about to be inserted. */
export const waitedFor = ({ reason }: SqlError.SqlError, table: string): boolean => {
  if (reason._tag !== "LockTimeoutError") return false
  let cause: unknown = reason
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause"); depth++) {
    cause = cause.cause
    if (Predicate.hasProperty(cause, "where")) return String(cause.where).includes(`"${table}"`)
  }
  return false
}

/** PostgreSQL's own message, for the operator: the innermost one, with its code where it has one. */
export const reasonOf = (error: SqlError.SqlError): string => {
  let cause: unknown = error.reason
  let said = error.reason.message
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause"); depth++) {
    cause = cause.cause
    if (!Predicate.hasProperty(cause, "message")) break
    said = Predicate.hasProperty(cause, "code")
      ? `${String(cause.code)} ${String(cause.message)}`
      : String(cause.message)
  }
  return said
}
