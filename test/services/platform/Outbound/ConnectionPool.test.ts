/** Which connection a request gets, and when a connection is closed. */
import { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { buildConnector } from "undici"
import * as ConnectionPool from "../../../../services/platform/Outbound/ConnectionPool.ts"
import { type ExchangeOutcome, HttpExchange } from "../../../../services/platform/Outbound/HttpExchange.ts"
import { sizeOf } from "../../../support/SizeOf.ts"
import { at, outboundOf, signal } from "./OutboundOf.ts"
import { makeAuthority } from "./Certificates.ts"
import { serve, serveNames, serveTcp } from "./LoopbackServers.ts"

const connect = buildConnector({ allowH2: false })
const limits = { keepOnSuccess: 100, keepOnFailure: 100, read: 1_000 }

const poolOf = Effect.fnUntraced(function* (config: Partial<ConnectionPool.PoolConfig> = {}) {
  const post = yield* ConnectionPool.make({ connect, latest: () => undefined, ...config })
  const send = (server: { readonly port: number }, body: Uint8Array | string = "{}") => {
    const { promise, resolve } = Promise.withResolvers<ExchangeOutcome>()
    const exchange = new HttpExchange(limits, () => 0, (_, outcome) => resolve(outcome))
    post(`http://127.0.0.1:${server.port}`, { path: "/", headers: {}, body }, exchange)
    return { exchange, outcome: Effect.promise(() => promise) }
  }
  return { send, sent: (server: { readonly port: number }, body?: Uint8Array | string) => send(server, body).outcome }
})

const answer = (body: string, fields = "") =>
  `HTTP/1.1 200 OK\r\n${fields}content-length: ${body.length}\r\n\r\n${body}`

/** A receiver that runs `onRequest` for each request, and signals when one of its connections is closed. */
const scripted = Effect.fnUntraced(function* (onRequest: (socket: Socket, n: number) => void) {
  let requests = 0
  let closed = signal()
  const server = yield* serveTcp((socket) => {
    if (socket.listenerCount("close") < 3) socket.once("close", () => closed.fire())
    onRequest(socket, ++requests)
  })
  return {
    ...server,
    requests: () => requests,
    closed: Effect.suspend(() => closed.wait),
    again: () => void (closed = signal()),
  }
})

describe("a connection", () => {
  it.effect("serves one request after the other", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("ok"))
      const { sent } = yield* poolOf()
      for (let n = 0; n < 20; n++) assert.deepInclude(yield* sent(server), { status: 200, error: null })
      assert.strictEqual(server.seen.connections, 1)
    }))

  it.effect("is replaced after five minutes, also when in constant use", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket) => socket.write(answer("ok")))
      const { sent } = yield* poolOf()
      for (let seconds = 0; seconds < 306; seconds += 3) {
        assert.deepInclude(yield* sent(server), { status: 200 })
        assert.strictEqual(server.seen.connections, seconds < 300 ? 1 : 2, `after ${seconds} s`)
        yield* TestClock.adjust("3 seconds")
      }
    }))

  it.effect("is replaced after 1,000 exchanges", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket) => socket.write(answer("ok")))
      const { sent } = yield* poolOf()
      for (let n = 1; n <= 1_001; n++) {
        assert.deepInclude(yield* sent(server), { status: 200 })
        assert.strictEqual(server.seen.connections, n <= 1_000 ? 1 : 2)
      }
    }))

  const offers: ReadonlyArray<readonly [offer: string, millis: number]> = [
    ["", 4_000],
    ["keep-alive: timeout=5\r\n", 3_000],
    ["Keep-Alive: max=7, timeout=10\r\n", 8_000],
    ["keep-alive: timeout=600\r\n", 30_000],
    ["keep-alive: none\r\n", 4_000],
  ]
  for (const [offer, millis] of offers) {
    it.effect(`stays idle for at most ${millis} ms when the receiver offers ${JSON.stringify(offer)}`, () =>
      Effect.gen(function* () {
        const server = yield* scripted((socket) => socket.write(answer("ok", offer)))
        const { sent } = yield* poolOf()
        yield* sent(server)
        yield* TestClock.adjust(millis - 1_000)
        yield* sent(server)
        assert.strictEqual(server.seen.connections, 1)
        yield* Effect.yieldNow
        // Idle connections are swept once a second.
        yield* TestClock.adjust(millis + 2_000)
        yield* server.closed
        yield* sent(server)
        assert.strictEqual(server.seen.connections, 2)
      }))
  }

  it.effect("is not kept if the receiver announces that it closes it, or keeps it for two seconds or less", () =>
    Effect.gen(function* () {
      for (const fields of ["connection: close\r\n", "keep-alive: timeout=2\r\n", "keep-alive: timeout=0\r\n"]) {
        const server = yield* scripted((socket) => socket.write(answer("ok", fields)))
        const { sent } = yield* poolOf()
        for (let n = 1; n <= 3; n++) {
          assert.deepInclude(yield* sent(server), { status: 200 })
          assert.strictEqual(server.seen.connections, n, fields)
        }
      }
    }))

  it.effect("is not used once its name has other addresses, or only refused ones", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket) => socket.write(answer("ok")))
      let latest: ReadonlySet<string> | undefined
      const { sent } = yield* poolOf({ latest: () => latest })
      const steps: ReadonlyArray<readonly [ReadonlyArray<string> | null, number]> = [
        [null, 1],
        [["10.0.0.1", "127.0.0.1"], 1],
        [["127.0.0.2"], 2],
        [["127.0.0.1"], 2],
        [[], 3],
      ]
      for (const [addresses, connections] of steps) {
        latest = addresses === null ? undefined : new Set(addresses)
        assert.deepInclude(yield* sent(server), { status: 200 })
        assert.strictEqual(server.seen.connections, connections, String(addresses))
      }
    }))

  it.effect("that ends or breaks while idle fails no request", () =>
    Effect.gen(function* () {
      for (const how of ["end", "resetAndDestroy"] as const) {
        const sockets: Array<Socket> = []
        const server = yield* scripted((socket) => {
          sockets.push(socket)
          socket.write(answer("ok"))
        })
        const { sent } = yield* poolOf()
        for (let n = 1; n <= 3; n++) {
          server.again()
          assert.deepInclude(yield* sent(server), { status: 200, error: null })
          assert.strictEqual(server.seen.connections, n)
          sockets.at(-1)![how]()
          yield* server.closed
          // This side sees the reset at its next poll.
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
        }
      }
    }))

  it.effect("that breaks during a request fails that request, which is not sent again", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket, n) => n === 2 ? socket.resetAndDestroy() : socket.write(answer("ok")))
      const { sent } = yield* poolOf()
      assert.deepInclude(yield* sent(server), { status: 200 })
      assert.deepInclude(yield* sent(server), { status: null, error: "reset" })
      assert.strictEqual(server.requests(), 2)
      assert.deepInclude(yield* sent(server), { status: 200 })
      assert.strictEqual(server.seen.connections, 2)
    }))

  it.effect("is not used again when the response came before the whole request was written", () =>
    Effect.gen(function* () {
      const server = yield* scripted((socket, n) => {
        if (n > 1) return void socket.write(answer("late"))
        socket.pause()
        socket.write(answer("early"))
      })
      const { sent } = yield* poolOf()
      const outcome = yield* sent(server, new Uint8Array(20_000_000))
      assert.strictEqual(Buffer.from(outcome.body!).toString(), "early")
      yield* sent(server)
      assert.strictEqual(server.seen.connections, 2)
    }))
})

describe("bytes without a request", () => {
  const forged = "HTTP/1.1 299 Forged\r\ncontent-length: 0\r\n\r\n"

  const sending: Readonly<Record<string, (socket: Socket) => void>> = {
    "in one write with the response": (socket) => socket.write(answer("ok") + forged),
    "right after the response": (socket) => {
      socket.write(answer("ok"))
      socket.write(forged)
    },
    "one turn of the event loop after the response": (socket) => {
      socket.write(answer("ok"))
      setImmediate(() => socket.write(forged))
    },
    "an empty line": (socket) => socket.write(`${answer("ok")}\r\n`),
  }
  for (const [when, send] of Object.entries(sending)) {
    it.effect(`${when} close the connection and are never read as a response`, () =>
      Effect.gen(function* () {
        const server = yield* scripted(send)
        const { sent } = yield* poolOf()
        for (let n = 0; n < 30; n++) {
          server.again()
          assert.deepInclude(yield* sent(server), { status: 200, error: null })
          yield* server.closed
        }
        assert.strictEqual(server.seen.connections, 30)
      }))
  }

  it.effect("close an idle connection", () =>
    Effect.gen(function* () {
      const sockets: Array<Socket> = []
      const server = yield* scripted((socket) => {
        sockets.push(socket)
        socket.write(answer("ok"))
      })
      const { sent } = yield* poolOf()
      yield* sent(server)
      yield* sent(server)
      assert.strictEqual(server.seen.connections, 1)
      sockets[0]!.write(forged)
      yield* server.closed
      assert.deepInclude(yield* sent(server), { status: 200 })
      assert.strictEqual(server.seen.connections, 2)
    }))
})

describe("a request", () => {
  it.effect("that expires after its response does not abort the next request on its connection", () =>
    Effect.gen(function* () {
      const release: Array<() => void> = []
      const arrived = signal()
      const server = yield* scripted((socket, n) => {
        if (n === 1) return void socket.write(answer("one"))
        release.push(() => socket.write(answer("two")))
        arrived.fire()
      })
      const { send } = yield* poolOf()
      const first = send(server)
      assert.deepInclude(yield* first.outcome, { status: 200 })
      const second = send(server)
      yield* arrived.wait
      first.exchange.expire()
      release[0]!()
      assert.deepInclude(yield* second.outcome, { status: 200, error: null })
      assert.strictEqual(server.seen.connections, 1)
    }))

  it.effect("that expires while it waits is never sent, and the others are", () =>
    Effect.gen(function* () {
      const full = signal()
      const release: Array<() => void> = []
      const server = yield* serve((_, response) => {
        release.push(() => response.end("ok"))
        if (release.length === 64) full.fire()
      })
      const { send } = yield* poolOf()
      const first = Array.from({ length: 64 }, () => send(server))
      yield* full.wait
      const waiting = Array.from({ length: 3 }, () => send(server))
      waiting[1]!.exchange.expire()
      assert.deepInclude(yield* waiting[1]!.outcome, { status: null, error: "timeout" })
      release.splice(0).forEach((respond) => respond())
      yield* Effect.forEach(first, ({ outcome }) => outcome)
      const until = (n: number): Effect.Effect<void> =>
        Effect.suspend(() =>
          server.requests.length >= n
            ? Effect.void
            : Effect.andThen(Effect.promise(() => new Promise((resolve) => setImmediate(resolve))), until(n))
        )
      yield* until(66)
      release.splice(0).forEach((respond) => respond())
      for (const n of [0, 2]) assert.deepInclude(yield* waiting[n]!.outcome, { status: 200 })
      assert.strictEqual(server.requests.length, 66)
      assert.strictEqual(server.seen.peak, 64)
    }))

  it.effect("to a port where nothing listens fails: 100 at once each fail, and the pool keeps nothing", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serve(() => {}))
      const { send } = yield* poolOf()
      const all = Array.from({ length: 100 }, () => send({ port }))
      for (const { outcome } of all) assert.deepInclude(yield* outcome, { status: null, body: null })
      assert.strictEqual(yield* sizeOf("origins, checked"), 0)
      assert.strictEqual(yield* sizeOf("connections, checked"), 0)
    }))
})

describe("the connections of a pool", () => {
  it.effect("are bounded: the one idle longest is closed for a new one, and without an idle one requests wait", () =>
    Effect.gen(function* () {
      const release: Array<() => void> = []
      let arrived = signal()
      const holding = yield* serve((_, response) => {
        release.push(() => response.end("ok"))
        arrived.fire()
      })
      const others = yield* Effect.forEach([1, 2, 3], () => serve((_, response) => response.end("ok")))
      const { send, sent } = yield* poolOf({ maxConnections: 2 })
      for (const other of others) assert.deepInclude(yield* sent(other), { status: 200 })
      assert.isAtMost(yield* sizeOf("connections, checked"), 2)
      const slow: Array<Effect.Effect<ExchangeOutcome>> = []
      for (let n = 0; n < 2; n++) {
        slow.push(send(holding).outcome)
        yield* arrived.wait
        arrived = signal()
      }
      const waiting = others.map((other) => send(other).outcome)
      assert.strictEqual(yield* sizeOf("connections, checked"), 2)
      release[0]!()
      for (const outcome of waiting) assert.deepInclude(yield* outcome, { status: 200, error: null })
      release[1]!()
      for (const outcome of slow) assert.deepInclude(yield* outcome, { status: 200 })
      assert.isAtMost(yield* sizeOf("connections, checked"), 2)
    }))

  it.effect("leave nothing of an origin whose only request expired while it waited", () =>
    Effect.gen(function* () {
      const arrived = signal()
      const release: Array<() => void> = []
      const server = yield* serve((_, response) => {
        release.push(() => response.end("ok"))
        arrived.fire()
      })
      const { send } = yield* poolOf({ maxConnections: 1 })
      const first = send(server)
      yield* arrived.wait
      const other = send({ port: server.port === 2_000 ? 2_001 : 2_000 })
      other.exchange.expire()
      assert.deepInclude(yield* other.outcome, { status: null, error: "timeout" })
      release[0]!()
      assert.deepInclude(yield* first.outcome, { status: 200 })
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      assert.strictEqual(yield* sizeOf("origins, checked"), 1)
    }))

  it.effect("are closed with the scope, and a request in flight fails as reset", () =>
    Effect.gen(function* () {
      const arrived = signal()
      const server = yield* serve((request, response) => {
        if (server.requests.length === 1) return response.end("ok")
        request.resume()
        arrived.fire()
      })
      const { early, outcome } = yield* Effect.scoped(Effect.gen(function* () {
        const { send, sent } = yield* poolOf()
        const early = yield* sent(server)
        const { outcome } = send(server)
        yield* arrived.wait
        return { early, outcome }
      }))
      assert.deepInclude(early, { status: 200 })
      assert.deepInclude(yield* outcome, { status: null, error: "reset" })
    }))
})

it.effect("connections are not used once their name resolves to a refused address", () =>
  Effect.gen(function* () {
    const authority = makeAuthority("Bailiwick test authority")
    const arrived = signal()
    const release: Array<() => void> = []
    const server = yield* serve((request, response) => {
      if (request.url !== "/held") return response.end("ok")
      release.push(() => response.end("ok"))
      arrived.fire()
    }, { tls: authority.issue("hook.test") })
    let address = "127.0.0.1"
    const names = yield* serveNames((_, family) => family === 4 ? [address] : [])
    const { send, sent } = yield* outboundOf({
      allowedCidrs: ["127.0.0.1/32"],
      nameservers: [names.nameserver],
      certificateAuthorities: [authority.certificate],
    })
    const url = `https://hook.test:${server.port}`
    // The connection stays in use while the cached DNS answer expires.
    for (let n = 0; n < 4; n++) {
      assert.deepInclude(yield* sent(`${url}/`), { status: 200, error: null })
      yield* TestClock.adjust("2 seconds")
    }
    const { connections } = server.seen
    address = "127.0.0.2"
    const busy = send(`${url}/held`)
    yield* arrived.wait
    assert.deepInclude(yield* sent(`${url}/`), { status: null, error: "blocked_address" })
    release[0]!()
    assert.deepInclude(yield* Effect.promise(() => busy), { status: 200, error: null })
    assert.deepInclude(yield* sent(`${url}/`), { status: null, error: "blocked_address" })
    assert.strictEqual(server.seen.connections, connections)
  }))

it.effect("connections are kept when a request's signal is aborted after its response", () =>
  Effect.gen(function* () {
    const server = yield* serve((_, response) => response.end("ok"))
    const { sent } = yield* outboundOf()
    for (let n = 0; n < 5; n++) {
      const controller = new AbortController()
      assert.deepInclude(yield* sent(at(server), { signal: controller.signal }), { status: 200 })
      controller.abort()
    }
    assert.strictEqual(server.seen.connections, 1)
  }))
