/** The shared parts of both servers: their input, their failures, and how they stop. */
import { Data, Effect, Fiber, type Scope } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Flows } from "../edge/StreamingResponse.ts"
import { headerTicks, ListenerConnections } from "./ListenerConnections.ts"

/** The address is taken, or cannot be bound. */
export class CannotListen extends Data.TaggedError("CannotListen")<{
  readonly host: string
  readonly port: number
  readonly cause: unknown
}> {
  override get message(): string {
    return `cannot listen on ${this.host}:${this.port}`
  }
}

/** The listener accepts no more connections, for another reason than a lack of descriptors or memory. */
export class CannotAccept extends Data.TaggedError("CannotAccept")<{ readonly cause: unknown }> {
  override get message(): string {
    return "the HTTP server accepts no more connections"
  }
}

export type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

export interface Listening {
  readonly app: (port: number) => App
  readonly running: Set<Fiber.Fiber<unknown, unknown>>
  readonly flows: Flows
  readonly connections: ListenerConnections
  /** A connection without a whole header is closed after this time. */
  readonly headerMillis: number
  /** How long kept connections are still answered (503) when the server stops. */
  readonly lingerMillis: number
}

/** How long a stopping server waits for requests in flight. */
const drain = "5 seconds"

/** The answer on a connection that finds no room; its request is not read. */
export const noRoom =
  "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

const within = (promise: Effect.Effect<void>, duration: string | number, orElse: Effect.Effect<void>) =>
  Effect.timeoutOrElse(Effect.interruptible(promise), { duration: duration as number, orElse: () => orElse })

/**
 * Ends the connections after the listener was closed: kept ones are answered for `lingerMillis` (a request in transit
 * would meet a reset otherwise), requests in flight have five seconds, and a client that does not read its answer has
 * half a second more.
 */
export const finish = ({ connections, lingerMillis, running }: Listening): Effect.Effect<void> => {
  const empty = Effect.promise(connections.empty)
  return Effect.gen(function* () {
    connections.stop()
    yield* within(empty, lingerMillis, Effect.sync(() => connections.finishIdle()))
    yield* within(empty, drain, Effect.suspend(() => Fiber.interruptAll([...running])))
    yield* within(empty, "500 millis", Effect.sync(() => connections.cutAll()))
  })
}

/** Counts ticks, and logs once a minute at most that connections found no room. */
export const watch = ({ connections, headerMillis }: Listening) => {
  const quiet = Math.ceil(60_000 * headerTicks / headerMillis)
  let silent = 0
  return Effect.suspend(() => {
    connections.tick()
    if (--silent > 0) return Effect.void
    const displaced = connections.report()
    if (displaced === 0) return Effect.void
    silent = quiet
    return Effect.logWarning(
      `${displaced} connections closed or refused for lack of room: ${connections.max} fit below the limit of file descriptors`,
    )
  }).pipe(Effect.delay(headerMillis / headerTicks), Effect.forever)
}
