/**
 * Handles an uncaught error of a library that would end the process. Every other uncaught error still ends it.
 *
 * When a broker closes the connection during the handshake, @nats-io/transport-node 3.4.0 abandons the socket and removes
 * its listeners, but still writes to it, or Deno still reports its reset: no listener is left for that error. The library
 * reconnects by itself, so the error is only reported on stderr.
 */
import { Predicate } from "effect"
import process from "node:process"
import { say } from "./StdioErrors.ts"

/** Whether an uncaught error belongs to an abandoned socket: a late write, or a reset that our code did not see. */
export const isLateWrite = (error: unknown): boolean => {
  if (!(error instanceof Error) || !Predicate.hasProperty(error, "code")) return false
  if (error.code === "ERR_STREAM_WRITE_AFTER_END") return /node_transport/.test(error.stack ?? "")
  return (error.code === "ECONNRESET" || error.code === "EPIPE") && "syscall" in error
}

/** Call once per process. */
export const forgiveLateWrites = (): void => {
  process.on("uncaughtException", (error) => {
    if (isLateWrite(error)) {
      say(process.stderr, "bailiwick: the broker closed a connection during the handshake; connecting again\n")
      return
    }
    say(process.stderr, `bailiwick: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
    process.exit(1)
  })
}
