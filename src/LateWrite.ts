/**
 * One fault of a library that would end the process: when a broker closes the connection during the handshake,
 * @nats-io/transport-node 3.4.0 gives the socket up and takes its listeners away, but still writes to it, or Deno still
 * tells of its reset; that error has nobody to go to. The library tries again by itself, so this one is only noted.
 * A second fault, of Deno's server, is passed over likewise (`isEndedTwice`).
 * Everything else that nobody caught ends the process, as it would without this.
 */
import { Predicate } from "effect"
import process from "node:process"
import { say } from "./Unheard.ts"

/** Whether an uncaught error is of a socket that was given up: that late write, or a reset that no code of ours saw. */
export const isLateWrite = (error: unknown): boolean => {
  if (!(error instanceof Error) || !Predicate.hasProperty(error, "code")) return false
  if (error.code === "ERR_STREAM_WRITE_AFTER_END") return /node_transport/.test(error.stack ?? "")
  return (error.code === "ECONNRESET" || error.code === "EPIPE") && "syscall" in error
}

/**
 * Whether an uncaught error is of Deno's server, told to end a connection that had ended at the same moment: Deno 2.9.6 throws
 * it in a listener of the connection's AbortSignal (ext:deno_http/00_serve.ts), where nothing can catch it. Nothing is lost.
 */
export const isEndedTwice = (error: unknown): boolean =>
  error instanceof Error && error.name === "BadResource" && /ext:deno_http\//.test(error.stack ?? "")

/** For the program's own process, once. */
export const forgiveLateWrites = (): void => {
  process.on("uncaughtException", (error) => {
    if (isEndedTwice(error)) return
    if (isLateWrite(error)) {
      say(process.stderr, "bailiwick: the broker closed a connection while it was greeted; trying again\n")
      return
    }
    say(process.stderr, `bailiwick: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
    process.exit(1)
  })
}
