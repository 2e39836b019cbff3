/**
 * The HTTP server: an app of routes behind the floor, on Deno's own server under Deno and on node:http elsewhere, or
 * where asked to: Deno's is faster, but holds three times the memory for each live stream.
 *
 * When its scope closes it ends streams, stops accepting, gives requests in flight five seconds and interrupts what is
 * left.
 * Whoever waits for the scope may then close what the handlers use.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Data, Deferred, Effect, Fiber, Layer, Random, type Scope } from "effect"
import { HttpEffect, HttpRouter, HttpServer, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import * as Edge from "./floor/Edge.ts"
import { type HotRead, HotReads } from "./floor/HotReads.ts"
import { hosts } from "./floor/Hosts.ts"
import { type Flows, overNode, overWeb } from "./floor/LongAnswer.ts"
import { cameBy, type Connection } from "./floor/Peer.ts"
import * as Routes from "./floor/Routes.ts"
import * as Validate from "./floor/Validate.ts"

export interface ServerOptions {
  readonly host: string
  /** 0 takes a free one below 32768. */
  readonly port: number
  /** The origin under which people reach us, where it is not `http://HOST:PORT`. */
  readonly publicUrl?: string
  /** Whether node:http serves under Deno, too; elsewhere it always does. */
  readonly nodeHttp?: boolean
}

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

type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

interface Listening {
  readonly app: (port: number) => App
  readonly running: Set<Fiber.Fiber<unknown, unknown>>
  readonly flows: Flows
  readonly nodeHttp: boolean
}

const drain = "5 seconds"

/** Requests in flight have had their time. */
const giveUp = (running: Listening["running"]) => Effect.suspend(() => Fiber.interruptAll([...running]))

/** Of Deno's namespace what we use; the sources are checked without its library. */
interface Deno {
  readonly serve: (
    options: {
      readonly hostname: string
      readonly port: number
      readonly onListen: () => void
    },
    handler: (request: Request, connection: Connection) => Promise<Response>,
  ) => { readonly shutdown: () => Promise<void>; readonly finished: Promise<void> }
}

const deno = Reflect.get(globalThis, "Deno") as Deno | undefined

/**
 * Without Deno's signal of a request, which aborts when it was answered, too, and says so on the terminal. A stream
 * ends when its client goes away even so, and whatever else is under way is bounded by the database's limits.
 */
const unsignalled = (request: Request): Request => Object.defineProperty(request, "signal", { value: undefined })

const onDeno = Effect.fnUntraced(function* ({ serve }: Deno, host: string, port: number, listening: Listening) {
  const context = yield* Effect.context<never>()
  const handler = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
    Context.merge(context, Edge.defaults),
  )(Effect.map(listening.app(port), (response) => overWeb(response, listening.flows)))
  yield* Effect.acquireRelease(
    Effect.try({
      try: () =>
        serve(
          { hostname: host, port, onListen: () => {} },
          (request, connection) => handler(cameBy(unsignalled(request), connection)),
        ),
      catch: (cause) => new CannotListen({ host, port, cause }),
    }),
    (server) => {
      const ended = Effect.interruptible(Effect.promise(() => server.shutdown()))
      return ended.pipe(
        Effect.timeoutOrElse({ duration: drain, orElse: () => giveUp(listening.running) }),
        // Whoever does not even read the answer is left behind.
        Effect.andThen(Effect.interruptible(Effect.promise(() => server.finished))),
        Effect.timeoutOrElse({ duration: "6 seconds", orElse: () => Effect.void }),
      )
    },
  )
})

const onNode = Effect.fnUntraced(function* (host: string, port: number, listening: Listening) {
  // As Deno has it: of a header that is sent twice nobody picks one.
  const http = createServer({ headersTimeout: 10_000, joinDuplicateHeaders: true })
  const server = yield* NodeHttpServer.make(() => http, { host, port, disablePreemptiveShutdown: true }).pipe(
    Effect.mapError((cause) => new CannotListen({ host, port, cause })),
  )
  const app = Effect.flatMap(listening.app(port), (response) => overNode(response, listening.flows))
  yield* server.serve(app).pipe(Effect.provideContext(Edge.defaults))
  // Added last, so it runs first: closing what `serve` added would wait for requests that run to their end.
  yield* Effect.addFinalizer(() => {
    const closed = new Promise<void>((resolve) => http.close(() => resolve()))
    const ended = Effect.interruptible(Effect.promise(() => closed))
    const cut = Effect.sync(() => http.closeAllConnections())
    return ended.pipe(
      Effect.timeoutOrElse({ duration: drain, orElse: () => giveUp(listening.running) }),
      Effect.andThen(Effect.timeoutOrElse(ended, { duration: "500 millis", orElse: () => cut })),
    )
  })
})

const listen = (host: string, port: number, listening: Listening) =>
  deno === undefined || listening.nodeHttp ? onNode(host, port, listening) : onDeno(deno, host, port, listening)

/** Ports from 32768 on are handed out to clients by the system, so a server there may find its own taken. */
const anyPort = Random.nextIntBetween(20_000, 32_768)

const bind = (host: string, port: number, listening: Listening) =>
  port !== 0 ? Effect.as(listen(host, port, listening), port) : anyPort.pipe(
    Effect.flatMap((free) => Effect.as(listen(host, free, listening), free)),
    Effect.retry({ times: 50 }),
  )

export class Server extends Context.Service<Server, {
  readonly host: string
  readonly port: number
  /** `http://HOST:PORT`. */
  readonly url: string
}>()("bailiwick/http/Server") {
  /**
   * Serves the routes of `app` (HttpApiBuilder.layer, HttpRouter.add) and gives the bound address. The contract's
   * `Floor` is provided here.
   */
  static readonly layer = <A, E, R>(app: Layer.Layer<A, E, R>, options: ServerOptions) =>
    Layer.effect(
      Server,
      Effect.gen(function* () {
        const routes = yield* Routes.make
        const { host } = options
        const hot = new Map<string, HotRead>()
        const served = Layer.provide(app, [
          Layer.succeed(HotReads, hot),
          Layer.succeed(HttpRouter.HttpRouter, routes.router),
          HttpServer.layerServices,
          Validate.layer,
        ])
        yield* Layer.build(served as Layer.Layer<A, E, Exclude<HttpRouter.Request.Without<R>, Provided>>)
        const running: Listening["running"] = new Set()
        const flows: Flows = new Set()
        const bracketed = host.includes(":") ? `[${host}]` : host
        const stopping = yield* Deferred.make<void>()
        const edge = yield* Edge.make({ routes, hot, running, stopping: Deferred.await(stopping) })
        const listening: Listening = {
          running,
          flows,
          nodeHttp: options.nodeHttp ?? false,
          app: (port) => edge(routes.router.asHttpEffect(), hosts(`${bracketed}:${port}`, options.publicUrl)),
        }
        const port = yield* bind(host, options.port, listening)
        yield* Effect.addFinalizer(() =>
          Effect.andThen(Deferred.succeed(stopping, undefined), Effect.sync(() => flows.forEach((flow) => flow.end())))
        )
        return Server.of({ host, port, url: `http://${bracketed}:${port}` })
      }),
    )
}

type Provided =
  | HttpRouter.HttpRouter
  | Layer.Success<typeof HttpServer.layerServices>
  | Layer.Success<typeof Validate.layer>
