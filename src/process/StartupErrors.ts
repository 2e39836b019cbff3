/** Reports a failed start in lines for a person, without a stack trace; LOG_LEVEL=debug shows the trace. */
import { Cause, Effect, Predicate } from "effect"
import * as SqlError from "effect/sql/SqlError"
import process from "node:process"
import { printable } from "../cli/EscapeControls.ts"
import { reasonOf } from "../cli/Reason.ts"

const messageOf = (error: unknown): string => {
  if (SqlError.isSqlError(error)) return `PostgreSQL: ${reasonOf(error)}`
  const message = Predicate.hasProperty(error, "message") ? String(error.message) : String(error)
  const reason = reasonOf(error)
  // Our own messages include their reason; messages of some libraries are empty.
  return message.includes(reason) ? message : message === "" || message === reason ? reason : `${message}: ${reason}`
}

/** Fails with exit code 1 after one line on standard error for each reason. */
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
