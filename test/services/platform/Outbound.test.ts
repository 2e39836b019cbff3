import { Buffer } from "node:buffer"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { at, outboundOf, signal } from "./Outbound/OutboundOf.ts"
import { serve, serveTcp } from "./Outbound/LoopbackServers.ts"

describe("a request and its response", () => {
  it.effect("path, headers and bytes are sent as given, and the first bytes of the response are kept", () =>
    Effect.gen(function* () {
      let received = Buffer.alloc(0)
      const server = yield* serve((request, response) => {
        request.on("data", (chunk) => received = Buffer.concat([received, chunk]))
        request.on("end", () => response.end("x".repeat(5_000)))
      })
      const outbound = yield* outboundOf()
      const body = new Uint8Array([0, 1, 2, 255])
      const outcome = yield* outbound.sent(at(server, "/a%20b?c=d#e"), { headers: { "X-One": "1" }, body })
      assert.deepStrictEqual(
        outcome,
        {
          status: 200,
          body: new Uint8Array(Buffer.from("x".repeat(4_096))),
          error: null,
          durationMs: 0,
          truncated: false,
        } as typeof outcome,
      )
      const [request] = server.requests
      assert.strictEqual(request!.method, "POST")
      assert.strictEqual(request!.url, "/a%20b?c=d")
      assert.strictEqual(request!.headers["x-one"], "1")
      assert.strictEqual(request!.headers["accept-encoding"], "identity")
      assert.strictEqual(request!.headers["content-length"], "4")
      assert.strictEqual(request!.headers.host, `127.0.0.1:${server.port}`)
      assert.deepStrictEqual(new Uint8Array(received), body)
    }))

  it.effect("headers may be a flat list, and the connection is used again", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(204).end())
      const outbound = yield* outboundOf()
      const values = ["1", "2", "3", "4", "5"]
      for (const value of values) {
        const outcome = yield* outbound.sent(at(server), { headers: ["x-one", value], body: "é" })
        assert.deepInclude(outcome, { status: 204, body: null, error: null })
      }
      assert.deepStrictEqual(server.requests.map(({ headers }) => headers["x-one"]), values)
      assert.strictEqual(server.requests[0]!.headers["content-length"], "2")
      // A connection rests for two turns of the event loop after a response: the second request may open another one.
      assert.isAtMost(server.seen.connections, 2)
    }))

  it.effect("a redirect is not followed", () =>
    Effect.gen(function* () {
      const elsewhere = yield* serve((_, response) => response.end())
      for (const status of [301, 302, 303, 307, 308]) {
        const server = yield* serve((_, response) => response.writeHead(status, { location: at(elsewhere) }).end())
        const outbound = yield* outboundOf()
        assert.deepInclude(yield* outbound.sent(at(server)), { status, error: null })
      }
      assert.strictEqual(elsewhere.seen.connections, 0)
    }))

  it.effect("of a failed response more than the limit of a successful one is kept", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(500).end("y".repeat(50_000)))
      const outbound = yield* outboundOf()
      const outcome = yield* outbound.sent(at(server))
      assert.strictEqual(outcome.status, 500)
      assert.strictEqual(outcome.body?.length, 50_000)
    }))

  it.effect("informational responses are skipped", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => {
        response.writeProcessing()
        response.writeEarlyHints({ link: "</x>; rel=preload" })
        response.end("ok")
      })
      const outbound = yield* outboundOf()
      assert.deepInclude(yield* outbound.sent(at(server)), { status: 200, error: null })
    }))

  it.effect("a gzip bomb is not unpacked", () =>
    Effect.gen(function* () {
      const bomb = gzipSync(Buffer.alloc(20_000_000))
      const server = yield* serve((_, response) => response.writeHead(500, { "content-encoding": "gzip" }).end(bomb))
      const outbound = yield* outboundOf()
      const outcome = yield* outbound.sent(at(server))
      assert.deepStrictEqual(outcome.body, new Uint8Array(bomb))
    }))

  it.effect("reading stops at 64 KiB, and the connection to a peer that sends 100 MB is closed", () =>
    Effect.gen(function* () {
      const closed = signal()
      let written = 0
      const server = yield* serve((_, response) => {
        response.writeHead(500, { "content-length": 100_000_000 })
        const write = () => {
          while (!response.destroyed && written < 100_000_000 && response.write(Buffer.alloc(50_000))) written += 50_000
        }
        response.on("drain", write)
        response.on("close", closed.fire)
        write()
      })
      const outbound = yield* outboundOf()
      const outcome = yield* outbound.sent(at(server))
      assert.deepInclude(outcome, { status: 500, error: null })
      assert.strictEqual(outcome.body?.length, 65_536)
      yield* closed.wait
      assert.isBelow(written, 50_000_000, "only as much as the sockets' buffers hold")
    }))

  it.effect("at most 64 connections are opened to one origin", () =>
    Effect.gen(function* () {
      const full = signal()
      const waiting: Array<() => void> = []
      let released = false
      const server = yield* serve((_, response) => {
        if (released) return response.end()
        waiting.push(() => response.end())
        if (waiting.length === 64) full.fire()
      })
      const outbound = yield* outboundOf()
      const all = Promise.all(Array.from({ length: 150 }, () => outbound.send(at(server))))
      yield* full.wait
      released = true
      for (const release of waiting) release()
      const outcomes = yield* Effect.promise(() => all)
      assert.isTrue(outcomes.every(({ status }) => status === 200))
      assert.strictEqual(server.seen.peak, 64)
    }))

  it.effect("the environment's proxies are not used", () =>
    Effect.gen(function* () {
      const proxy = yield* serve((_, response) => response.end())
      for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) process.env[name] = at(proxy)
      const server = yield* serve((_, response) => response.end())
      const outbound = yield* outboundOf()
      assert.deepInclude(yield* outbound.sent(at(server)), { status: 200 })
      assert.strictEqual(proxy.seen.connections, 0)
      for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) delete process.env[name]
    }))
})

describe("an attempt without a whole response", () => {
  it.effect("reset: the peer resets or closes the connection without a response", () =>
    Effect.gen(function* () {
      const outbound = yield* outboundOf()
      for (const end of ["resetAndDestroy", "end"] as const) {
        const server = yield* serveTcp((socket) => socket[end]())
        assert.deepInclude(yield* outbound.sent(at(server)), { status: null, body: null, error: "reset" }, end)
      }
    }))

  it.effect("body: the peer closes in the middle of its response", () =>
    Effect.gen(function* () {
      const server = yield* serveTcp((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"))
      const outbound = yield* outboundOf()
      const outcome = yield* outbound.sent(at(server))
      assert.deepInclude(outcome, { status: 200, error: "body" })
      assert.strictEqual(Buffer.from(outcome.body!).toString(), "half")
    }))

  it.effect("protocol: the peer does not speak HTTP, or the request has an invalid header", () =>
    Effect.gen(function* () {
      const server = yield* serveTcp((socket) => socket.end("220 mail.example ESMTP\r\n"))
      const outbound = yield* outboundOf()
      assert.deepInclude(yield* outbound.sent(at(server)), { status: null, error: "protocol" })
      const injected = yield* outbound.sent(at(server), { headers: { "x-one": "1\r\nx-two: 2" } })
      assert.deepInclude(injected, { status: null, error: "protocol" })
    }))

  it.effect("connect: nothing listens on the port", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serve(() => {}))
      const outbound = yield* outboundOf()
      assert.deepInclude(yield* outbound.sent(at({ port })), { status: null, error: "connect" })
    }))
})

describe("ask, for the operator's own URLs", () => {
  it.effect("ignores the address policy and returns any status", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) =>
        response.writeHead(request.url === "/keys" ? 200 : 404).end(request.url)
      )
      const outbound = yield* outboundOf({ allowedCidrs: [] })
      const found = yield* outbound.ask(`http://localhost:${server.port}/keys`, { trusted: true })
      assert.strictEqual(found.status, 200)
      assert.strictEqual(Buffer.from(found.body).toString(), "/keys")
      assert.strictEqual((yield* outbound.ask(at(server, "/x"), { trusted: true })).status, 404)
    }))

  it.effect("accepts a body up to the limit", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => response.end(Buffer.alloc(Number(request.url!.slice(1)))))
      const outbound = yield* outboundOf()
      const exact = yield* outbound.ask(at(server, `/${1024 * 1024}`), { trusted: true })
      assert.strictEqual(exact.body.length, 1024 * 1024)
      const error = yield* Effect.flip(outbound.ask(at(server, `/${1024 * 1024 + 1}`), { trusted: true }))
      assert.deepInclude(error, { reason: "too_large", host: `127.0.0.1:${server.port}` })
    }))

  it.effect("fails with the reason", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serve(() => {}))
      const outbound = yield* outboundOf()
      const error = yield* Effect.flip(outbound.ask(at({ port }), { trusted: true }))
      assert.deepInclude(error, { _tag: "OutboundError", reason: "connect" })
      assert.deepInclude(yield* Effect.flip(outbound.ask("file:///etc/passwd", { trusted: true })), {
        reason: "protocol",
      })
    }))
})

describe("hostKey", () => {
  it.effect("is the same for every spelling of a destination", () =>
    Effect.gen(function* () {
      const { hostKey } = yield* outboundOf()
      for (const url of ["https://Example.com/a", "https://example.com.:443/b?c", "https://EXAMPLE.com:0443"]) {
        assert.strictEqual(hostKey(url), "example.com:443")
      }
      assert.strictEqual(hostKey("http://127.1/"), "127.0.0.1:80")
      assert.strictEqual(hostKey("https://[::1]:9000/"), "[::1]:9000")
      assert.strictEqual(hostKey("nonsense"), "")
    }))
})
