/** Deliveries over TLS: refused certificates, kept connections, and responses that are cut off. */
import { createServer, type TLSSocket } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeAuthority } from "./Certificates.ts"
import { outboundOf } from "./OutboundOf.ts"
import { serve, serveOn } from "./LoopbackServers.ts"

const authority = makeAuthority("Bailiwick test authority")
const good = authority.issue("localhost")

const sender = outboundOf({ certificateAuthorities: [authority.certificate] })
const urlOf = ({ port }: { readonly port: number }) => `https://localhost:${port}/`

const scripted = (onRequest: (socket: TLSSocket, n: number) => void) => {
  let n = 0
  return serveOn(createServer(good, (socket) => {
    socket.on("error", () => {})
    socket.on("data", () => onRequest(socket, ++n))
  }))
}

describe("a certificate", () => {
  const refused = {
    "of an unknown authority": makeAuthority("localhost").issue("localhost"),
    "for another name": authority.issue("elsewhere.test"),
    "that has expired": authority.issueExpired("localhost"),
  }
  for (const [what, tls] of Object.entries(refused)) {
    it.effect(`${what} gets no request`, () =>
      Effect.gen(function* () {
        const server = yield* serve((_, response) => response.end("ok"), { tls })
        const outbound = yield* sender
        for (let n = 0; n < 2; n++) {
          assert.deepInclude(yield* outbound.sent(urlOf(server)), { status: null, body: null, error: "tls" })
        }
        assert.strictEqual(server.requests.length, 0)
      }))
  }
})

describe("a connection over TLS", () => {
  it.effect("is kept", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("ok"), { tls: good })
      const outbound = yield* sender
      for (let n = 0; n < 10; n++) assert.deepInclude(yield* outbound.sent(urlOf(server)), { status: 200, error: null })
      assert.isAtMost(server.seen.connections, 2, "the first attempt uses only the system's authorities")
    }))

  it.effect("closed in a body fails as body, before a status as reset, and the next request succeeds", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket, n) => {
        if (n === 2) return void socket.destroy()
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", () => n === 1 ? socket.destroy() : undefined)
        if (n > 2) socket.write(" whole")
      })
      const outbound = yield* sender
      assert.deepInclude(yield* outbound.sent(urlOf(server)), { status: 200, error: "body" })
      assert.deepInclude(yield* outbound.sent(urlOf(server)), { status: null, error: "reset" })
      assert.deepInclude(yield* outbound.sent(urlOf(server)), { status: 200, error: null })
    }))

  it.effect("that ends also ends a body without a length", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket) => socket.end("HTTP/1.1 500 x\r\n\r\nwhole"))
      const outbound = yield* sender
      const outcome = yield* outbound.sent(urlOf(server))
      assert.deepInclude(outcome, { status: 500, error: null })
      assert.strictEqual(Buffer.from(outcome.body!).toString(), "whole")
    }))
})
