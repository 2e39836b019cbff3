/** Reports errors in one line each, never as a stack: what went wrong and, where it is known, what to type. */
import { Cause, Logger, Predicate } from "effect"
import { CliError } from "effect/cli"
import process from "node:process"
import { printable } from "./EscapeControls.ts"
import { reasonOf } from "./Reason.ts"

const reported = new Set(["Unsuccessful", "ShowHelp"])
const ours = new Set([
  "CliFault",
  "ConfigFault",
  "VaultError",
  "EmbeddedError",
  "NotOwner",
  "ReadOnly",
  "TooNew",
  "Unfilled",
])

/** The lines to print for a failure; none where the command printed them already, or was interrupted. */
export const linesOf = (cause: Cause.Cause<unknown>): ReadonlyArray<string> => {
  if (Cause.hasInterruptsOnly(cause)) return []
  const error = Cause.squash(cause)
  const tag = Predicate.hasProperty(error, "_tag") ? String(error._tag) : ""
  if (reported.has(tag)) return []
  if (CliError.isCliError(error)) return [printable(error.message)]
  if (ours.has(tag) && error instanceof Error) return error.message.split("\n").map(printable)
  return [printable(tag === "SqlError" ? `the database: ${reasonOf(error)}` : reasonOf(error))]
}

const text = (part: unknown): string => typeof part === "string" ? part : reasonOf(part)

/** Prints log messages of services as one line each on standard error. */
export const logger = Logger.layer([
  Logger.make(({ logLevel, message }) => {
    const parts = Array.isArray(message) ? message : [message]
    process.stderr.write(`${logLevel.toLowerCase()}: ${printable(parts.map(text).join(" "))}\n`)
  }),
])
