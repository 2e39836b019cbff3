/**
 * Standard output of a command. Its reader may have seen enough (`| head`): the command then ends in order and without
 * a failure, unless part of its output is worthless.
 */
import { Console, Effect, Predicate } from "effect"
import process from "node:process"
import { format } from "node:util"
import { CliFault } from "./CliFault.ts"
import { reasonOf } from "./Reason.ts"

let cutShort: string | null = null

/** Makes an early end of the reader a failure whose line begins with `what`; null: no longer a failure. */
export const wholeOrNothing = (what: string | null): void => void (cutShort = what)

/** Ends when the reader has gone, or output cannot be written. Start it before any output: it keeps listening. */
export const unread: Effect.Effect<void, CliFault> = Effect.callback((resume) => {
  process.stdout.on("error", (error) => {
    const seen = Predicate.hasProperty(error, "code") && error.code === "EPIPE"
    if (seen && cutShort === null) return resume(Effect.void)
    // Node reports a full disk late, when the command may have ended.
    if (!seen) process.exitCode = 1
    const why = seen ? "the reader of standard output ended early" : `standard output: ${reasonOf(error)}`
    resume(Effect.fail(new CliFault({ message: cutShort === null ? why : `${cutShort}: ${why}` })))
  })
  // A failure of standard error cannot be reported anywhere.
  process.stderr.on("error", () => {})
})

/** Deno's own console does not report a reader that has gone. */
export const console: Console.Console = Object.assign(Object.create(globalThis.console), {
  log: (...parts: ReadonlyArray<unknown>) => void process.stdout.write(`${format(...parts)}\n`),
})
