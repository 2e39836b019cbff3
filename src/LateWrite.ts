/**
 * One fault of a library that would end the process: when a broker closes the connection during the handshake,
 * @nats-io/transport-node 3.4.0 still writes to the socket, after it has taken its own listeners away, and the socket's
 * error has nobody to go to. The library tries again by itself, so this one is only noted. Everything else that nobody
 * caught ends the process, as it would without this.
 */
import { Predicate } from "effect"
import process from "node:process"

/** Whether an uncaught error is that late write and nothing else. */
export const isLateWrite = (error: unknown): boolean =>
  Predicate.hasProperty(error, "code") && error.code === "ERR_STREAM_WRITE_AFTER_END" &&
  error instanceof Error && /node_transport/.test(error.stack ?? "")

/** For the program's own process, once. */
export const forgiveLateWrites = (): void => {
  process.on("uncaughtException", (error) => {
    if (isLateWrite(error)) {
      process.stderr.write("bailiwick: the broker closed a connection while it was greeted; trying again\n")
      return
    }
    process.stderr.write(`bailiwick: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
    process.exit(1)
  })
}
