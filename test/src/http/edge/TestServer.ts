/** The HTTP edge with its audit in a database of its own, over a real socket. */
import { Deferred, Effect, Layer } from "effect"
import { Context } from "effect"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { routes, type Slow } from "./TestApi.ts"

export class SlowHandler extends Context.Service<SlowHandler, Slow>()("bailiwick/test/SlowHandler") {
  static readonly layer = Layer.effect(
    SlowHandler,
    Effect.gen(function* () {
      return {
        started: yield* Deferred.make<void>(),
        proceed: yield* Deferred.make<void>(),
        done: yield* Deferred.make<void>(),
      }
    }),
  )
}

const server = Layer.unwrap(
  Effect.map(
    SlowHandler,
    (slow) => Server.layer(routes(slow), { host: "127.0.0.1", port: 0, publicUrl: "https://mail.example.com" }),
  ),
)

export const layer = server.pipe(
  Layer.provide(RejectionAudit.layer.pipe(Layer.provide(Audit.layer))),
  Layer.provideMerge(SlowHandler.layer),
  Layer.provideMerge(TestDatabase.layer),
)

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Readonly<Record<string, unknown>>
}

/** One request; a string body is sent as it is. */
export const call = Effect.fnUntraced(function* (
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const { url } = yield* Server
  return yield* Effect.promise(async (signal): Promise<Reply> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      signal,
    })
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.includes("json") && text !== ""
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : {} }
  })
})

/** Sends bytes over a bare socket, for requests that no client sends; returns what came before the server closed. */
export const raw = Effect.fnUntraced(function* (parts: ReadonlyArray<string>, until: (soFar: string) => boolean) {
  const { host, port } = yield* Server
  const { connect } = yield* Effect.promise(() => import("node:net"))
  return yield* Effect.callback<string>((resume) => {
    let soFar = ""
    const socket = connect({ host, port }, () => parts.forEach((part) => socket.write(part)))
    const end = () => {
      socket.destroy()
      resume(Effect.succeed(soFar))
    }
    socket.on("data", (chunk) => {
      soFar += chunk.toString("latin1")
      if (until(soFar)) end()
    })
    socket.on("close", end)
    socket.on("error", end)
    return Effect.sync(() => socket.destroy())
  })
})
