/** Whatever ends a start says so in lines for a person, not in a stack trace; the trace is there with LOG_LEVEL=debug. */
import { Cause, Effect, Predicate } from "effect"
import * as SqlError from "effect/sql/SqlError"
import process from "node:process"
import { printable } from "./cli/Printable.ts"
import { reasonOf } from "./cli/Reason.ts"

const messageOf = (error: unknown): string => {
  if (SqlError.isSqlError(error)) return `PostgreSQL: ${reasonOf(error)}`
  const told = Predicate.hasProperty(error, "message") ? String(error.message) : String(error)
  const reason = reasonOf(error)
  // Ours say all of it, some libraries nothing.
  return told.includes(reason) ? told : told === "" || told === reason ? reason : `${told}: ${reason}`
}

/** Fails with exit code 1 after one line a reason on standard error. */
export const refuse = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(program, (cause) =>
    Effect.gen(function* () {
      if (Cause.hasInterruptsOnly(cause)) return
      const lines = new Set(cause.reasons.flatMap((reason) => {
        if (reason._tag === "Fail") return [messageOf(reason.error)]
        return reason._tag === "Die" ? [messageOf(reason.defect)] : []
      }))
      for (const line of lines) {
        process.stderr.write(line.split("\n").map((part) => `bailiwick: ${printable(part)}\n`).join(""))
      }
      yield* Effect.logDebug("the start failed", cause)
    }))
