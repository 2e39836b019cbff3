/**
 * Answers that go on for hours after their request was handled, each at the cost of its connection: bytes go straight to
 * the server's own response, and no fiber, stream or scope of the request stays. A handler answers with
 * `HttpServerResponse.raw(new LongAnswer(flow), …)`; the server that has the connection attaches it.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpBody, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ServerResponse } from "node:http"

interface Sink {
  /** Takes bytes; false where it wants no more until it says `drained`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Nothing follows. `whole`: everything was taken that there was. */
  readonly end: (whole: boolean) => void
}

/** Where the bytes come from. */
export interface Flow {
  readonly attach: (sink: Sink) => void
  /** The connection wants more. */
  readonly drained: () => void
  /** The client went away. */
  readonly gone: () => void
  /** Ends it from this side. */
  readonly end: () => void
}

export class LongAnswer {
  readonly flow: Flow
  constructor(flow: Flow) {
    this.flow = flow
  }
}

/** The flows of a server's connections; all are ended when it stops. */
export type Flows = Set<Flow>

const flowOf = ({ body }: HttpServerResponse.HttpServerResponse): Flow | null =>
  body._tag === "Raw" && body.body instanceof LongAnswer ? body.body.flow : null

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

/** Responses of node:http that go on for as long as their client stays. */
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
    // The request's fiber is done soon, and nothing may keep it: whoever waits for the connection's end is we.
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
    // What Effect's server asks before it writes: it finds that it has nothing left to do.
    Object.defineProperty(connection, "writableEnded", { value: true })
    return response
  })
