/**
 * Deno's own server, fed by an accept loop of ours.
 *
 * `Deno.serve` accepts by itself: it cannot bound its connections, waits for a header for ever, and ends at the first
 * EMFILE. Its engine also serves single connections (`serveHttpOnConnection`, which Deno keeps for its own modules;
 * where it is missing, node:http serves), so each connection is known here, and can be ended.
 */
import { Context, Effect, Fiber, type Scope } from "effect"
import { HttpEffect, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { maxBody } from "../edge/Body.ts"
import { defaults } from "../edge/RequestPipeline.ts"
import { overWeb } from "../edge/StreamingResponse.ts"
import { answeredWith, type Awaits, Came, cameBy, type Connection } from "../edge/RemoteAddress.ts"
import { buffered } from "./ListenerConnections.ts"
import { CannotAccept, CannotListen, finish, type Listening, noRoom, watch } from "./Listening.ts"

interface Accepted {
  readonly write: (bytes: Uint8Array) => Promise<number>
  readonly close: () => void
}

interface Listener {
  readonly accept: () => Promise<Accepted>
  readonly close: () => void
}

type Handler = (request: Request, info: Connection & { readonly completed: Promise<void> }) => Promise<Response>

/** The part of an AbortSignal that Deno's engine uses: it is given one function, once. */
interface Cut {
  readonly addEventListener: (type: "abort", cut: () => void) => void
}

type ServeOn = (
  connection: Accepted,
  signal: Cut,
  handler: Handler,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => { readonly finished: Promise<void>; readonly shutdown: () => Promise<void> }

/** The part of Deno's namespace that is used here: the sources are type-checked without Deno's library. */
export interface Deno {
  readonly listen: (options: { readonly hostname: string; readonly port: number }) => Listener
  readonly serveOn: ServeOn
}

/** The functions of Deno, or undefined where one is missing. */
export const deno = ((): Deno | undefined => {
  const namespace = Reflect.get(globalThis, "Deno")
  const serveOn = namespace?.[namespace.internal]?.serveHttpOnConnection
  // Looked up at each start: a test puts another listener in its place.
  return typeof serveOn === "function" && serveOn.length === 5
    ? { serveOn, listen: (options) => namespace.listen(options) }
    : undefined
})()

/**
 * Removes Deno's signal of a request, which also aborts after the answer, and reports that on the terminal. Streams
 * still end when their client disconnects, and other work is bounded by the database's limits.
 */
const unsignalled = (request: Request): Request => Object.defineProperty(request, "signal", { value: undefined })

const codeOf = (error: unknown) => (error as { readonly code?: unknown } | null)?.code

/** Shortages that pass when connections end: the listener is sound. */
const scarce = new Set<unknown>(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"])

/** After so many other errors in a row the listener is taken for broken. */
const patience = 20

const pause = "100 millis"

const encoded = new TextEncoder().encode(noRoom)

/** Ends a connection, which may have ended already. */
const whatever = (end: () => void) => {
  try {
    end()
  } catch {
    // Ended by its client, or about to end.
  }
}

const turnAway = (accepted: Accepted) => {
  const close = () => whatever(() => accepted.close())
  accepted.write(encoded).then(close, close)
}

/** Records the length of an answer that the system does not take at once; most are short. */
const noted = (response: HttpServerResponse.HttpServerResponse) => {
  const bytes = response.body._tag === "Uint8Array" ? response.body.contentLength : 0
  return bytes <= buffered ? Effect.succeed(response) : Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    answeredWith(request, bytes)
    return response
  })
}

type Answer = (request: Request) => Promise<Response>

/** Of a refused body, at most this much is read and dropped, and for so long. */
const spare = { bytes: 2 * maxBody, millis: 1_000 }

/**
 * Reads the rest of a refused body and drops it. Deno closes a connection whose request was not read to its end, and a
 * client that still writes then is reset, and may never read why it was refused (RFC 9112, section 9.6).
 */
const dropped = async (body: ReadableStreamDefaultReader<Uint8Array>): Promise<void> => {
  const end = () => void body.cancel().catch(() => {})
  const late = setTimeout(end, spare.millis)
  let bytes = 0
  try {
    while (bytes <= spare.bytes) {
      const { done, value } = await body.read()
      if (done) return
      bytes += value.byteLength
    }
  } catch {
    // Cut off by its client.
  } finally {
    clearTimeout(late)
    end()
  }
}

/** A request, and what is left to do of its body before its answer goes. */
interface Incoming {
  readonly request: Request
  readonly rest: () => Promise<void>
}

/** A body of unknown length, which is read on after its reader gave it up. */
const ofUnknownLength = (request: Request, unread: ReadableStream<Uint8Array>): Incoming => {
  const whole = unread.getReader()
  let rest: Promise<void> | null = null
  const cancel = () => {
    rest ??= dropped(whole)
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { done, value } = await whole.read()
    if (done) controller.close()
    else controller.enqueue(value)
  }
  const body = new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })
  return {
    request: Object.defineProperty(request, "body", { value: body }),
    rest: async () => {
      if (!request.bodyUsed) cancel()
      await rest
    },
  }
}

/**
 * The body of a request whose answer may come before it was read, as a refusal's does. Deno itself reads the rest of one
 * that was cancelled and is no longer than allowed; a client that asked whether to go on has not sent it yet.
 */
const incoming = (request: Request): Incoming => {
  const { body, headers, method } = request
  if (method === "GET" || method === "HEAD" || body === null) return { request, rest: () => Promise.resolve() }
  const length = headers.get("content-length")
  if (length === null) return ofUnknownLength(request, body)
  const rest = async () => {
    if (request.bodyUsed) return
    if (Number(length) <= maxBody) await body.cancel().catch(() => {})
    else if (!headers.has("expect")) await dropped(body.getReader())
  }
  return { request, rest }
}

const serving = ({ serveOn }: Deno, answer: Answer, { connections }: Listening) => (accepted: Accepted) => {
  let cut = () => {}
  let graceful = () => {}
  const connection = connections.opened(() => whatever(cut), () => graceful())
  if (connection === null) return turnAway(accepted)
  const awaits: Awaits = (caller, giveUp) => connections.awaits(connection, caller, giveUp)
  const handler: Handler = (request, info) => {
    connections.requested(connection)
    const came = new Came(info, awaits)
    const done = () => connections.answered(connection, came.bytes)
    info.completed.then(done, done)
    const { request: read, rest } = incoming(unsignalled(request))
    return answer(cameBy(read, came)).then(async (response) => {
      await rest()
      return response
    })
  }
  served(() => {
    const signal: Cut = { addEventListener: (_, listener) => cut = listener }
    const server = serveOn(accepted, signal, handler, () => new Response(null, { status: 500 }), () => {})
    graceful = () => void server.shutdown().catch(() => {})
    return server.finished
  }, () => connections.gone(connection))
}

/** Serving fails at once on a connection that its client has reset. */
const served = (start: () => Promise<void>, gone: () => void) => {
  try {
    start().then(gone, gone)
  } catch {
    gone()
  }
}

const accepting = (
  listener: Listener,
  { connections }: Listening,
  take: (accepted: Accepted) => void,
): Effect.Effect<never, CannotAccept> => {
  let failures = 0
  const next = Effect.tryPromise({ try: () => listener.accept(), catch: (cause) => cause }).pipe(
    Effect.matchEffect({
      onSuccess: (accepted) =>
        Effect.sync(() => {
          failures = 0
          take(accepted)
        }),
      onFailure: (cause) => {
        const transient = scarce.has(codeOf(cause))
        if (!transient && ++failures >= patience) return Effect.fail(new CannotAccept({ cause }))
        if (transient) connections.makeRoom()
        return Effect.sleep(pause)
      },
    }),
  )
  return Effect.forever(next)
}

/** Listens; the result fails when the listener is broken. */
export const onDeno = Effect.fnUntraced(function* (
  deno: Deno,
  host: string,
  port: number,
  listening: Listening,
): Effect.fn.Return<Effect.Effect<never, CannotAccept>, CannotListen, Scope.Scope> {
  const context = yield* Effect.context<never>()
  const answer = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
    Context.merge(context, defaults),
  )(
    Effect.flatMap(listening.app(port), (response) => noted(overWeb(response, listening.flows))),
  )
  const listener = yield* Effect.try({
    try: () => deno.listen({ hostname: host, port }),
    catch: (cause) => new CannotListen({ host, port, cause }),
  })
  yield* Effect.addFinalizer(() => finish(listening))
  yield* Effect.forkScoped(watch(listening))
  const loop = yield* Effect.forkScoped(accepting(listener, listening, serving(deno, answer, listening)))
  yield* Effect.addFinalizer(() => Effect.sync(() => listener.close()))
  return Fiber.join(loop)
})
