/**
 * The HTTP server: routes behind the HTTP edge, on Deno's own server under Deno, and on node:http elsewhere or with
 * NODE_HTTP. Deno's server is faster, but holds three times the memory for each live stream. Connections are bounded;
 * where there is no room, a new connection displaces an idle one (listener/ListenerConnections.ts).
 *
 * When its scope closes, the server ends streams, stops accepting, answers kept connections for a moment (503), gives
 * requests in flight five seconds and interrupts the rest. After that the services that handlers use may close.
 */
import { Context, Deferred, Effect, Layer, Random } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as Edge from "./edge/RequestPipeline.ts"
import { type FastRead, FastReads } from "./edge/FastReads.ts"
import { hosts } from "./edge/HostHeader.ts"
import type { Flows } from "./edge/StreamingResponse.ts"
import { Brand } from "../../services/platform/Brand.ts"
import { brandedPages } from "./pages/BrandedPages.ts"
import * as Routes from "./edge/Routes.ts"
import * as Validate from "./edge/Validate.ts"
import { ListenerConnections } from "./listener/ListenerConnections.ts"
import { connectionsBelow, descriptorLimit } from "./listener/Descriptors.ts"
import type { CannotAccept, Listening } from "./listener/Listening.ts"
import { deno, onDeno } from "./listener/OnDeno.ts"
import { onNode } from "./listener/OnNode.ts"

export interface ServerOptions {
  readonly host: string
  /** 0 takes a free port below 32768. */
  readonly port: number
  /** The public origin, where it is not `http://HOST:PORT`. */
  readonly publicUrl?: string
  /** Whether to use node:http under Deno, too; elsewhere it is always used. */
  readonly nodeHttp?: boolean
  /** The most connections at a time; by default as many as fit below the limit of file descriptors. */
  readonly maxConnections?: number | null
  /** A connection without a complete request header for this long is closed; 10 s by default. */
  readonly headerMillis?: number
  /** How long a stopping server still answers kept connections: as long as a request may be in transit. */
  readonly lingerMillis?: number
}

const listen = (host: string, port: number, listening: Listening, nodeHttp: boolean) =>
  deno === undefined || nodeHttp ? onNode(host, port, listening) : onDeno(deno, host, port, listening)

/** The system gives ports from 32768 on to outgoing connections, so a server's port from there could be taken. */
const anyPort = Random.nextIntBetween(20_000, 32_768)

const bind = (host: string, port: number, listening: Listening, nodeHttp: boolean) => {
  const at = (port: number) => Effect.map(listen(host, port, listening, nodeHttp), (failed) => ({ port, failed }))
  return port !== 0 ? at(port) : anyPort.pipe(Effect.flatMap(at), Effect.retry({ times: 50 }))
}

export class Server extends Context.Service<Server, {
  readonly host: string
  readonly port: number
  /** `http://HOST:PORT`. */
  readonly url: string
  /** Never succeeds; fails where the server can accept no more connections, and the program has to end. */
  readonly failed: Effect.Effect<never, CannotAccept>
}>()("bailiwick/http/Server") {
  /** Serves the routes of `app` (HttpApiBuilder.layer, HttpRouter.add). Provides the contract's `Floor`. */
  static readonly layer = <A, E, R>(app: Layer.Layer<A, E, R>, options: ServerOptions) =>
    Layer.effect(
      Server,
      Effect.gen(function* () {
        const routes = yield* Routes.make
        const { host } = options
        const fastReads = new Map<string, FastRead>()
        const branded = brandedPages(yield* Brand)
        const served = Layer.provide(app, [
          Layer.succeed(FastReads, fastReads),
          Layer.succeed(HttpRouter.HttpRouter, routes.router),
          HttpServer.layerServices,
          Validate.layer,
        ])
        yield* Layer.build(served as Layer.Layer<A, E, Exclude<HttpRouter.Request.Without<R>, Provided>>)
        const running: Listening["running"] = new Set()
        const flows: Flows = new Set()
        const bracketed = host.includes(":") ? `[${host}]` : host
        const stopping = yield* Deferred.make<void>()
        const edge = yield* Edge.make({
          routes,
          fastReads,
          running,
          stopping: Deferred.await(stopping),
          stops: () => Deferred.isDoneUnsafe(stopping),
        })
        const listening: Listening = {
          running,
          flows,
          connections: new ListenerConnections(options.maxConnections ?? connectionsBelow(descriptorLimit())),
          headerMillis: options.headerMillis ?? 10_000,
          lingerMillis: options.lingerMillis ?? 0,
          app: (port) =>
            edge(Effect.map(routes.router.asHttpEffect(), branded), hosts(`${bracketed}:${port}`, options.publicUrl)),
        }
        const { failed, port } = yield* bind(host, options.port, listening, options.nodeHttp ?? false)
        yield* Effect.addFinalizer(() =>
          Effect.andThen(Deferred.succeed(stopping, undefined), Effect.sync(() => flows.forEach((flow) => flow.end())))
        )
        return Server.of({ host, port, url: `http://${bracketed}:${port}`, failed })
      }),
    )
}

type Provided =
  | HttpRouter.HttpRouter
  | Layer.Success<typeof HttpServer.layerServices>
  | Layer.Success<typeof Validate.layer>
