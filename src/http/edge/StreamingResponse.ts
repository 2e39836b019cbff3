/**
 * Streaming answers that last for hours after their request was handled, each at the cost of its connection: bytes go
 * straight to the server's own response, and no fiber, stream or scope of the request stays. A handler answers with
 * `HttpServerResponse.raw(new LongAnswer(flow), …)`; the server that has the connection attaches the flow.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpBody, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ServerResponse } from "node:http"

interface Sink {
  /** Writes bytes; false where the flow must write no more until `drained`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Ends the answer. `whole`: all of its bytes were written. */
  readonly end: (whole: boolean) => void
}

/** The source of the bytes. */
export interface Flow {
  readonly attach: (sink: Sink) => void
  /** The connection can take more bytes. */
  readonly drained: () => void
  /** The client has disconnected. */
  readonly gone: () => void
  /** Ends the answer from the server's side. */
  readonly end: () => void
}

export class StreamingResponse {
  readonly flow: Flow
  constructor(flow: Flow) {
    this.flow = flow
  }
}

/** Proxies may not buffer, store or compress a stream. */
const headers = { "cache-control": "no-store, no-transform", "x-accel-buffering": "no" }

/** An answer of Server-Sent Events. */
export const eventStream = (flow: Flow): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(new StreamingResponse(flow), { contentType: "text/event-stream", headers })

/** The flows of a server's connections; all are ended when it stops. */
export type Flows = Set<Flow>

const flowOf = ({ body }: HttpServerResponse.HttpServerResponse): Flow | null =>
  body._tag === "Raw" && body.body instanceof StreamingResponse ? body.body.flow : null

const bodyOf = (flow: Flow, flows: Flows) =>
  new ReadableStream<Uint8Array>({
    start: (controller) => {
      flows.add(flow)
      flow.attach({
        write: (bytes) => {
          controller.enqueue(bytes)
          return false
        },
        end: () => {
          flows.delete(flow)
          controller.close()
        },
      })
    },
    pull: () => flow.drained(),
    cancel: () => {
      flows.delete(flow)
      flow.gone()
    },
  }, { highWaterMark: 0 })

/** For a server that takes web responses. */
export const overWeb = (response: HttpServerResponse.HttpServerResponse, flows: Flows) => {
  const flow = flowOf(response)
  if (flow === null) return response
  return HttpServerResponse.setBody(response, HttpBody.raw(bodyOf(flow, flows), { contentType: "text/event-stream" }))
}

/** Responses of node:http that last for as long as their client stays. */
export const streams = new WeakSet<ServerResponse>()

/** For node:http: the response is taken from Effect's server before it is written. */
export const overNode = (response: HttpServerResponse.HttpServerResponse, flows: Flows) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const flow = flowOf(response)
    if (flow === null) return response
    if (request.method === "HEAD") {
      flow.gone()
      return response
    }
    const connection = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    connection.writeHead(response.status, response.headers)
    flows.add(flow)
    streams.add(connection)
    // Removes Effect's listener, which would keep the request's fiber: the flow alone waits for the connection's end.
    connection.removeAllListeners("close")
    connection.on("drain", () => flow.drained())
    connection.once("close", () => {
      flows.delete(flow)
      flow.gone()
    })
    if (connection.destroyed) flow.gone()
    else {
      flow.attach({
        write: (bytes) => connection.write(bytes),
        end: (whole) => whole ? connection.end() : connection.destroy(),
      })
    }
    // Effect's server reads this before it writes, and then leaves the response alone.
    Object.defineProperty(connection, "writableEnded", { value: true })
    return response
  })
