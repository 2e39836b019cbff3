/** node:http: the only server on Node, and the server on Deno with NODE_HTTP. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Deferred, Effect, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { connect, Server as NetServer, type Socket } from "node:net"
import { defaults } from "../edge/RequestPipeline.ts"
import { type Awaits, Came, cameBy } from "../edge/RemoteAddress.ts"
import { overNode, streams } from "../edge/StreamingResponse.ts"
import type { Connection, ListenerConnections } from "./ListenerConnections.ts"
import { CannotAccept, CannotListen, finish, type Listening, noRoom, watch } from "./Listening.ts"
import { answerUnparsed } from "./Unparsed.ts"

const turnAway = (socket: Socket) => {
  socket.on("error", () => {})
  socket.end(noRoom, () => socket.destroy())
}

const ended = (http: Server): Effect.Effect<void> =>
  Effect.sync(() => {
    // Not node:http's own `close`, which ends kept connections at once.
    if (http.listening) NetServer.prototype.close.call(http)
  })

const unreadMillis = 1_000

/**
 * Ends a connection whose client still sends a refused body after so long. Node reads such a body to its end; Deno's
 * node:http reads no more of one with a known length, and would keep the connection until its client gives up.
 */
const endUnread = (request: IncomingMessage) => {
  setTimeout(() => request.complete || request.socket.destroy(), unreadMillis).unref()
}

/**
 * Says in the 413 of a chunked body that the connection ends with it. @effect/platform-node 4.1.0 reads 256 KiB more of a
 * refused body once it has answered, and then ends the connection; of a chunked one it cannot say so before, of one with
 * a known length it does.
 */
const lastOfChunked = (response: HttpServerResponse.HttpServerResponse) =>
  Effect.map(
    HttpServerRequest.HttpServerRequest,
    ({ headers }) =>
      response.status === 413 && headers["transfer-encoding"] !== undefined
        ? HttpServerResponse.setHeader(response, "connection", "close")
        : response,
  )

/** Reports each connection and request to `connections`. */
export const counted = (http: Server, connections: ListenerConnections) => {
  const known = new WeakMap<object, Connection>()
  http.on("connection", (socket: Socket) => {
    const cut = () => void socket.destroy()
    const connection = connections.opened(cut, cut)
    if (connection === null) return turnAway(socket)
    known.set(socket, connection)
    socket.once("close", () => connections.gone(connection))
  })
  const requested = (request: IncomingMessage, response: ServerResponse) => {
    const connection = known.get(request.socket)
    if (connection === undefined) return
    const { remoteAddress } = request.socket
    const awaits: Awaits = (caller, giveUp) => connections.awaits(connection, caller, giveUp)
    cameBy(request, new Came({ remoteAddr: remoteAddress === undefined ? {} : { hostname: remoteAddress } }, awaits))
    connections.requested(connection, () => response.writableEnded && !streams.has(response))
    // Emitted once the system has the answer's last byte, or the client has disconnected; the socket is free by then.
    response.once("close", () => {
      connections.answered(connection)
      if ("Deno" in globalThis && !request.complete) endUnread(request)
    })
  }
  http.on("request", requested)
  http.on("checkContinue", requested)
}

const probePause = "5 seconds"

const probePatience = 2_000

/** Whether the listener accepts a connection within two seconds; null where this process cannot connect. */
const comesThrough = (http: Server, host: string, port: number): Effect.Effect<boolean | null> =>
  Effect.callback<boolean | null>((resume) => {
    const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
    const probe = connect({ host: address, port })
    const ended = (through: boolean | null) => {
      http.off("connection", seen)
      probe.destroy()
      resume(Effect.succeed(through))
    }
    const seen = () => ended(true)
    http.on("connection", seen)
    probe.once("error", () => ended(null))
    const late = setTimeout(() => ended(false), probePatience)
    return Effect.sync(() => clearTimeout(late))
  })

/**
 * Opens the listener again when it no longer accepts: node:http of Deno 2.9.6 never accepts again after EMFILE, and
 * reports no error (libs/core/uv_compat/tcp.rs, `poll_accept`). The kept connections stay. Node recovers by itself.
 */
const revived = Effect.fnUntraced(function* (http: Server, host: string, port: number) {
  let before = -1
  let accepted = 0
  http.on("connection", () => accepted++)
  const look = Effect.gen(function* () {
    if (accepted === before && (yield* comesThrough(http, host, port)) === false && http.listening) {
      yield* ended(http)
      http.listen({ host, port, backlog })
      yield* Effect.logWarning("the HTTP listener no longer accepted connections: opened again")
    }
    before = accepted
  })
  return yield* Effect.forever(Effect.andThen(Effect.sleep(probePause), look))
})

/** Short on Deno, whose node:http accepts the whole queue before this program can refuse a connection. */
const backlog = "Deno" in globalThis ? 64 : 511

/** Listens; the result fails when the listener is broken. */
export const onNode = Effect.fnUntraced(function* (
  host: string,
  port: number,
  listening: Listening,
): Effect.fn.Return<Effect.Effect<never, CannotAccept>, CannotListen, Scope.Scope> {
  const { connections, flows, headerMillis } = listening
  const http = createServer({
    // As on Deno: a repeated header is joined, and none of its values is picked.
    joinDuplicateHeaders: true,
    // Our own check refuses a request without a Host like one with a foreign Host (421).
    requireHostHeader: false,
    // `watch` closes connections without a header: Node checks every 30 s only, Deno never.
    headersTimeout: 0,
    // Announced to clients, so that they send nothing over a connection that is about to be closed.
    keepAliveTimeout: headerMillis,
  })
  counted(http, connections)
  yield* answerUnparsed(http)
  const server = yield* NodeHttpServer.make(() => http, { host, port, backlog, disablePreemptiveShutdown: true }).pipe(
    Effect.mapError((cause) => new CannotListen({ host, port, cause })),
  )
  const broken = yield* Deferred.make<never, CannotAccept>()
  http.on("error", (cause) => Deferred.doneUnsafe(broken, Effect.fail(new CannotAccept({ cause }))))
  const app = listening.app(port).pipe(
    Effect.flatMap(lastOfChunked),
    Effect.flatMap((response) => overNode(response, flows)),
  )
  yield* server.serve(app).pipe(Effect.provideContext(defaults))
  yield* Effect.forkScoped(watch(listening))
  // Added last, so it runs first: the finalizer of `serve` would wait for requests that run to their end.
  yield* Effect.addFinalizer(() =>
    ended(http).pipe(
      Effect.andThen(finish(listening)),
      Effect.andThen(Effect.sync(() => http.closeAllConnections())),
    )
  )
  if ("Deno" in globalThis) yield* Effect.forkScoped(revived(http, host, port))
  return Deferred.await(broken)
})
