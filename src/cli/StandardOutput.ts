/**
 * Standard output as a command has it. Whoever reads it may have seen enough (`| head`): the command then ends, in order and
 * well, unless what it writes is worth nothing but whole.
 */
import { Console, Effect, Predicate } from "effect"
import process from "node:process"
import { format } from "node:util"
import { CliFault } from "./CliFault.ts"
import { reasonOf } from "./Reason.ts"

let cutShort: string | null = null

/** From now on an end of the reading is a fault, of which `what` begins the line; null: not any more. */
export const wholeOrNothing = (what: string | null): void => void (cutShort = what)

/** Ends when nobody reads any more, or nothing more can be written. To be begun before anything is: it goes on listening. */
export const unread: Effect.Effect<void, CliFault> = Effect.callback((resume) => {
  process.stdout.on("error", (error) => {
    const seen = Predicate.hasProperty(error, "code") && error.code === "EPIPE"
    if (seen && cutShort === null) return resume(Effect.void)
    // Node tells of a full disk when the command may have ended.
    if (!seen) process.exitCode = 1
    const why = seen ? "nobody reads standard output to its end" : `standard output: ${reasonOf(error)}`
    resume(Effect.fail(new CliFault({ message: cutShort === null ? why : `${cutShort}: ${why}` })))
  })
  // Then there is nobody to tell.
  process.stderr.on("error", () => {})
})

/** Deno's own console says nothing of a reader that has gone. */
export const console: Console.Console = Object.assign(Object.create(globalThis.console), {
  log: (...parts: ReadonlyArray<unknown>) => void process.stdout.write(`${format(...parts)}\n`),
})
