/** node:http: the only server on Node, and on Deno where it is asked for. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Deferred, Effect, type Scope } from "effect"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { connect, Server as NetServer, type Socket } from "node:net"
import { defaults } from "../edge/Edge.ts"
import { overNode, streams } from "../edge/LongAnswer.ts"
import type { Connection, Connections } from "./Connections.ts"
import { CannotAccept, CannotListen, finish, type Listening, noRoom, watch } from "./Listening.ts"
import { answerUnparsed } from "./Unparsed.ts"

const turnAway = (socket: Socket) => {
  socket.on("error", () => {})
  socket.end(noRoom, () => socket.destroy())
}

const ended = (http: Server): Effect.Effect<void> =>
  Effect.sync(() => {
    // Not node:http's own, which closes kept connections on the spot.
    if (http.listening) NetServer.prototype.close.call(http)
  })

/** Tells `connections` of each connection and request. */
const counted = (http: Server, connections: Connections) => {
  const known = new WeakMap<object, Connection>()
  http.on("connection", (socket: Socket) => {
    const cut = () => void socket.destroy()
    const connection = connections.opened(cut, cut)
    if (connection === null) return turnAway(socket)
    known.set(socket, connection)
    socket.once("close", () => connections.gone(connection))
  })
  const requested = ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = known.get(socket)
    if (connection === undefined) return
    connections.requested(connection, () => response.writableEnded && !streams.has(response))
    // After the answer's last byte was given to the system, or the client has gone; the socket is free by then.
    response.once("close", () => connections.answered(connection))
  }
  http.on("request", requested)
  http.on("checkContinue", requested)
}

const probePause = "5 seconds"

const probePatience = 2_000

/** Whether a connection to the listener comes through within two seconds; null where none can be made from here. */
const comesThrough = (http: Server, host: string, port: number): Effect.Effect<boolean | null> =>
  Effect.callback<boolean | null>((resume) => {
    const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
    const probe = connect({ host: address, port })
    const told = (through: boolean | null) => {
      http.off("connection", seen)
      probe.destroy()
      resume(Effect.succeed(through))
    }
    const seen = () => told(true)
    http.on("connection", seen)
    probe.once("error", () => told(null))
    const late = setTimeout(() => told(false), probePatience)
    return Effect.sync(() => clearTimeout(late))
  })

/**
 * Opens the listener anew when it has gone deaf: node:http of Deno 2.9.6 never accepts again after EMFILE, and says
 * nothing (libs/core/uv_compat/tcp.rs, `poll_accept`). The kept connections stay. Node recovers by itself.
 */
const revived = Effect.fnUntraced(function* (http: Server, host: string, port: number) {
  let before = -1
  let accepted = 0
  http.on("connection", () => accepted++)
  const look = Effect.gen(function* () {
    if (accepted === before && (yield* comesThrough(http, host, port)) === false && http.listening) {
      yield* ended(http)
      http.listen({ host, port, backlog })
      yield* Effect.logWarning("the HTTP listener accepted nothing any more: opened anew")
    }
    before = accepted
  })
  return yield* Effect.forever(Effect.andThen(Effect.sleep(probePause), look))
})

/** Deno's node:http accepts the whole queue before it asks: kept short there. */
const backlog = "Deno" in globalThis ? 64 : 511

/** Listens, and gives what fails when the listener has broken. */
export const onNode = Effect.fnUntraced(function* (
  host: string,
  port: number,
  listening: Listening,
): Effect.fn.Return<Effect.Effect<never, CannotAccept>, CannotListen, Scope.Scope> {
  const { connections, flows, headerMillis } = listening
  const http = createServer({
    // As Deno has it: of a header that is sent twice none is picked.
    joinDuplicateHeaders: true,
    // A request without a Host is refused as one with another's (421).
    requireHostHeader: false,
    // `watch` closes connections without a header: Node looks every 30 s only, Deno never.
    headersTimeout: 0,
    // Told to clients, so that they send nothing over a connection that is about to be closed.
    keepAliveTimeout: headerMillis,
  })
  counted(http, connections)
  yield* answerUnparsed(http)
  const server = yield* NodeHttpServer.make(() => http, { host, port, backlog, disablePreemptiveShutdown: true }).pipe(
    Effect.mapError((cause) => new CannotListen({ host, port, cause })),
  )
  const broken = yield* Deferred.make<never, CannotAccept>()
  http.on("error", (cause) => Deferred.doneUnsafe(broken, Effect.fail(new CannotAccept({ cause }))))
  const app = Effect.flatMap(listening.app(port), (response) => overNode(response, flows))
  yield* server.serve(app).pipe(Effect.provideContext(defaults))
  yield* Effect.forkScoped(watch(listening))
  // Added last, so it runs first: closing what `serve` added would wait for requests that run to their end.
  yield* Effect.addFinalizer(() =>
    ended(http).pipe(
      Effect.andThen(finish(listening)),
      Effect.andThen(Effect.sync(() => http.closeAllConnections())),
    )
  )
  if ("Deno" in globalThis) yield* Effect.forkScoped(revived(http, host, port))
  return Deferred.await(broken)
})
