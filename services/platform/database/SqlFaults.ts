/** Telling what a statement was given from how PostgreSQL fares. */
import { Predicate } from "effect"
import type { SqlError } from "effect/sql"

/**
 * Whether the values were at fault: PostgreSQL's classes 22 (data exception) and 54 (program limit exceeded), or a value
 * that could not be encoded. Everything else may pass, or is ours to mend, and must not cost a message.
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

/** SQLSTATE classes of a server that is away, busy, full or read-only, and of transactions that met another. */
const passing = /^(08|25|40|53|55|57|58)/

/** Whether the same statement may succeed later: nothing is wrong with it or with what it was given. */
export const mayPass = ({ reason }: SqlError.SqlError): boolean => {
  if (reason.isRetryable) return true
  let cause: unknown = reason
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause"); depth++) {
    cause = cause.cause
    if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return passing.test(cause.code)
  }
  return false
}

/** Whether a lock on a row of the table, or on one that is about to be there, was waited for too long. */
export const waitedFor = ({ reason }: SqlError.SqlError, table: string): boolean => {
  if (reason._tag !== "LockTimeoutError") return false
  let cause: unknown = reason
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause"); depth++) {
    cause = cause.cause
    if (Predicate.hasProperty(cause, "where")) return String(cause.where).includes(`"${table}"`)
  }
  return false
}

/** What PostgreSQL itself said, for the operator: the innermost message, with its code where it has one. */
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
