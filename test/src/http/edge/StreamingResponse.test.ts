/** Streaming answers on both servers: their end, and the connections that they leave. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { connect, type Socket } from "node:net"
import { type Flow, StreamingResponse } from "../../../../src/http/edge/StreamingResponse.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"

type Sink = Parameters<Flow["attach"]>[0]

/** One answer that sends `hello` and then what it is told to. */
const flowing = () => {
  const seen: Array<"attached" | "gone" | "ended"> = []
  const over = Deferred.makeUnsafe<void>()
  let sink: Sink | null = null
  const leave = (how: "gone" | "ended") => {
    seen.push(how)
    Deferred.doneUnsafe(over, Effect.void)
  }
  const flow: Flow = {
    attach: (own) => {
      seen.push("attached")
      sink = own
      sink.write(new TextEncoder().encode("hello\n"))
    },
    drained: () => {},
    gone: () => leave("gone"),
    end: () => {
      leave("ended")
      sink?.end(true)
    },
  }
  return { flow, seen, over: Deferred.await(over), say: (text: string) => sink?.write(new TextEncoder().encode(text)) }
}

const served = Effect.fnUntraced(function* (nodeHttp: boolean) {
  const made = flowing()
  const scope = yield* Scope.make()
  const route = HttpRouter.add(
    "GET",
    "/long",
    Effect.sync(() => HttpServerResponse.raw(new StreamingResponse(made.flow), { contentType: "text/event-stream" })),
  )
  const { port } = yield* Layer.buildWithScope(
    Server.layer(route, { host: "127.0.0.1", port: 0, nodeHttp }).pipe(
      Layer.provide(Layer.succeed(RejectionAudit, { record: () => Effect.succeed(null) })),
    ),
    scope,
  ).pipe(Effect.map((context) => Context.get(context, Server)))
  return { ...made, port, stop: Scope.close(scope, Exit.void) }
})

interface Caller {
  readonly socket: Socket
  /** Waits until the received text matches. */
  readonly heard: (pattern: RegExp) => Effect.Effect<string>
  readonly closed: Effect.Effect<void>
}

const calling = (port: number, method: string) =>
  Effect.sync((): Caller => {
    const socket = connect({ port, host: "127.0.0.1" })
    let text = ""
    const listeners = new Set<() => void>()
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1")
      listeners.forEach((listener) => listener())
    })
    socket.on("error", () => {})
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
    socket.write(`${method} /long HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`)
    return {
      socket,
      heard: (pattern) =>
        Effect.callback((resume) => {
          const look = () => {
            if (!pattern.test(text)) return
            listeners.delete(look)
            resume(Effect.succeed(text))
          }
          listeners.add(look)
          look()
        }),
      closed: Effect.promise(() => closed),
    }
  })

for (const nodeHttp of [false, true]) {
  describe(`an answer that goes on, ${nodeHttp ? "on node:http" : "on the runtime's own server"}`, () => {
    it.live("carries its headers and its data as sent, and notices when its client is gone", () =>
      Effect.gen(function* () {
        const { over, port, say, seen, stop } = yield* served(nodeHttp)
        const { heard, socket } = yield* calling(port, "GET")
        const head = yield* heard(/hello/)
        for (const header of [/^HTTP\/1\.1 200/, /content-type: text\/event-stream/i, /x-request-id: /i, /nosniff/]) {
          assert.match(head, header)
        }
        say("again\n")
        yield* heard(/again/)
        socket.destroy()
        yield* over
        assert.deepStrictEqual(seen, ["attached", "gone"])
        yield* stop
        assert.deepStrictEqual(seen, ["attached", "gone"])
      }))

    it.live("ends when the server stops, which does not wait for its client", () =>
      Effect.gen(function* () {
        const { port, seen, stop } = yield* served(nodeHttp)
        const { closed, heard } = yield* calling(port, "GET")
        yield* heard(/hello/)
        const began = performance.now()
        yield* stop
        yield* closed
        assert.isBelow(performance.now() - began, 4_000)
        assert.strictEqual(seen[1], "ended")
      }))

    it.live("is ended where only its head was wanted", () =>
      Effect.gen(function* () {
        const { over, port, seen, stop } = yield* served(nodeHttp)
        const { heard, socket } = yield* calling(port, "HEAD")
        assert.notInclude(yield* heard(/\r\n\r\n/), "hello")
        yield* over
        assert.strictEqual(seen.at(-1), "gone")
        socket.destroy()
        yield* stop
      }))
  })
}
