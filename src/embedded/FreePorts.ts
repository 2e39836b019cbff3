/**
 * Chooses ports below 32768, which no system uses for outgoing connections: a port chosen here is not taken by a chance
 * connection between the probe and the server's own listen.
 */
import { Effect, Predicate, Random, Schedule } from "effect"
import { createServer } from "node:net"
import { refusedPorts } from "../../services/platform/Outbound/BlockedPorts.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"

const lowest = 10_240
const highest = 32_000

const probe = (port: number, host: string) =>
  Effect.callback<number, EmbeddedError>((resume) => {
    const server = createServer()
    server.once("error", (cause) => resume(Effect.fail(attempting(`cannot listen on ${host}:${port}`)(cause))))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resume(Effect.succeed(port))))
  })

/** None of the ports that users' URLs may not name: what listens here may be a receiver of webhooks. */
const anyPort = Effect.repeat(Random.nextIntBetween(lowest, highest), { until: (port) => !refusedPorts.has(port) })

/** A port of `host` (loopback by default) that nothing listened on a moment ago, 10240 to 32000. */
export const freePort = Effect.fn("Ports.freePort")(function* (host: string = "127.0.0.1") {
  const somewhere = Effect.flatMap(anyPort, (port) => probe(port, host))
  return yield* Effect.retry(somewhere, Schedule.recurs(50))
})

const isTaken = ({ cause }: EmbeddedError) => Predicate.hasProperty(cause, "code") && cause.code === "EADDRINUSE"

/** Fails, with a line for the terminal, where another program listens on the port that `variable` names. */
export const mustBeFree = Effect.fn("Ports.mustBeFree")(function* (variable: string, host: string, port: number) {
  yield* Effect.mapError(probe(port, host), (error) =>
    isTaken(error)
      ? new EmbeddedError({
        message: `cannot listen on ${host}:${port}, another program does: end it, or set ${variable} to another port`,
      })
      : error)
})
