/**
 * Reads a request's body once, within limits: 256 KiB however it is sent, ten seconds, UTF-8, and JSON no deeper than
 * 32 levels. The contract's own decoder can read the same text again.
 */
import { ByteSize, Deferred, Effect } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest } from "effect/http"
import {
  BodyTooLarge,
  DependencyUnavailable,
  MalformedRequest,
  RequestTimeout,
} from "../../../schemas/problems/HttpProblems.ts"
import { Clients } from "./Clients.ts"
import { awaitsOf } from "./RemoteAddress.ts"
import { RequestActor } from "./RequestActor.ts"

/** Bytes. */
export const maxBody = 256 * 1024

const deadline = "10 seconds"

/** The detail of the answers of a server that stops: another process, or the next one, serves the client. */
export const stopping = "This process is stopping: try again on a new connection"

const decoder = new TextDecoder("utf-8", { fatal: true })

const tooLarge = (error: HttpServerError.HttpServerError) =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/** The caller whose body is read: the principal, or the client's address while no principal is known. */
const callerOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { actor, charged } = yield* RequestActor
  const { addressOf } = yield* Clients
  return actor ?? charged ?? addressOf(request) ?? ""
})

/**
 * The body's text. Fails with 413, with 408 where connections are short and the listener gave it up, with 503 where it
 * was still arriving when the server began to stop, or with 400 where it is late, cut off or no UTF-8.
 */
export const readText = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const arrival = Deferred.makeUnsafe<
    ArrayBuffer,
    BodyTooLarge | DependencyUnavailable | MalformedRequest | RequestTimeout
  >()
  // Read by a fiber that ends with the request: interrupting the read would cut the connection before the answer.
  yield* request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxBody)),
    Effect.mapError((error) =>
      tooLarge(error) ? new BodyTooLarge({}) : new MalformedRequest({ detail: "The body could not be read" })
    ),
    Effect.interruptible,
    Deferred.into(arrival),
    Effect.forkScoped({ startImmediately: true }),
  )
  const giveUp = (stops: boolean) =>
    void Deferred.doneUnsafe(
      arrival,
      Effect.fail(stops ? new DependencyUnavailable({ detail: stopping }) : new RequestTimeout({})),
    )
  const arrived = awaitsOf(request)(yield* callerOf(request), giveUp)
  const bytes = yield* Deferred.await(arrival).pipe(
    Effect.timeoutOrElse({
      duration: deadline,
      orElse: () => Effect.fail(new MalformedRequest({ detail: "The body did not arrive within 10 seconds" })),
    }),
    Effect.interruptible,
    Effect.ensuring(Effect.sync(arrived)),
  )
  // Possible over HTTP/2 only. Limits, media types and CSRF go by these two headers, and would treat the request as one
  // without a body.
  const { "content-length": length, "transfer-encoding": coding } = request.headers
  if (bytes.byteLength > 0 && length === undefined && coding === undefined) {
    return yield* new MalformedRequest({ detail: "The length of the body is missing: send Content-Length" })
  }
  return yield* Effect.try({
    try: () => decoder.decode(bytes),
    catch: () => new MalformedRequest({ detail: "The body is not UTF-8" }),
  })
})

/** The same request with another text for its body. */
export const withText = (request: HttpServerRequest.HttpServerRequest, text: string) =>
  Object.create(request, { text: { value: Effect.succeed(text) } }) as HttpServerRequest.HttpServerRequest
