/**
 * The reason of an error, as one line for a person. Apart from the other commands, so that a start does not load them.
 */
import { Predicate } from "effect"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const codeOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : undefined

const hints: Readonly<Record<string, string>> = {
  "42P01": `; the schema is missing or incomplete, type "${cliCommand("migrate")}"`,
  "42703": `; the schema is too old, type "${cliCommand("migrate")}"`,
}

/** The innermost reason of an error: drivers wrap theirs several times over. */
export const reasonOf = (error: unknown): string => {
  let message = ""
  let hint = ""
  let at: unknown = error
  for (let depth = 0; depth < 8 && Predicate.isObject(at); depth++) {
    if (Predicate.hasProperty(at, "message") && typeof at.message === "string" && at.message !== "") {
      message = at.message
    }
    hint = hints[codeOf(at) ?? ""] ?? hint
    const inner: unknown = at instanceof AggregateError ? at.errors[0] : "cause" in at ? at.cause : undefined
    at = inner ?? ("reason" in at ? at.reason : undefined)
  }
  return (message === "" ? String(error) : message).split("\n", 1)[0] + hint
}
