/** Receivers that never end their response: only their own attempt fails, and a bounded number of bytes is read. */
import { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Outcome } from "../../../../services/platform/Outbound.ts"
import { at, outboundOf, signal } from "./OutboundOf.ts"
import { serveTcp } from "./LoopbackServers.ts"

const ok = "HTTP/1.1 200 OK\r\n"
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`

const mebibyte = 1024 * 1024

/** Writes `beginning`, then `again` endlessly; returns the outcome and the number of bytes that the sockets took. */
const endless = Effect.fnUntraced(function* (beginning: string, again: string | Buffer) {
  const closed = signal()
  let written = 0
  const flood = (socket: Socket) => {
    socket.removeAllListeners("data")
    socket.on("data", () => {}).on("close", closed.fire)
    socket.write(beginning)
    const more = () => {
      while (!socket.destroyed && written < 1024 * mebibyte) {
        written += again.length
        if (!socket.write(again)) return
      }
    }
    socket.on("drain", more)
    more()
  }
  const server = yield* serveTcp(flood)
  const { sent } = yield* outboundOf()
  const outcome = yield* sent(at(server))
  yield* closed.wait
  return { outcome, written }
})

const refused = { status: null, body: null, error: "protocol" } as const

const floods: Readonly<Record<string, readonly [beginning: string, again: string | Buffer, Partial<Outcome>, number]>> =
  {
    "a status line": ["HTTP/1.1 200 ", "x".repeat(1_000), refused, 0],
    "a head of many fields": [ok, "x: y\r\n".repeat(50), refused, 0],
    "one field": [`${ok}x: `, "y".repeat(1_000), refused, 0],
    "informational responses": ["", "HTTP/1.1 103 x\r\nlink: <a>\r\n\r\n".repeat(20), refused, 0],
    "a body of a gibibyte": [`${ok}content-length: ${1024 * mebibyte}\r\n\r\n`, Buffer.alloc(65_536), {
      error: null,
      status: 200,
    }, 4_096],
    "a body without a length": [`${ok}\r\n`, Buffer.alloc(65_536), { error: null, status: 200 }, 4_096],
    "chunks of one byte": [chunked, "1\r\nx\r\n".repeat(100), { error: null, status: 200 }, 4_096],
    "chunks of one byte, with extensions": [
      chunked,
      `1;${"a".repeat(250)}\r\nx\r\n`,
      { error: "body", status: 200 },
      65,
    ],
    "a chunk's size": [chunked, "0".repeat(100), { error: "body", status: 200 }, 0],
    "trailers": [`${chunked}0\r\n`, "x: y\r\n".repeat(50), { error: "body", status: 200 }, 0],
    "a failure's body": ["HTTP/1.1 500 x\r\n\r\n", Buffer.alloc(65_536), { error: null, status: 500 }, 65_536],
  }

for (const [what, [beginning, again, expected, kept]] of Object.entries(floods)) {
  it.effect(`${what} without an end is cut off`, () =>
    Effect.gen(function* () {
      const { outcome, written } = yield* endless(beginning, again)
      assert.deepInclude(outcome, expected)
      assert.strictEqual(outcome.body?.length ?? 0, kept)
      assert.isBelow(written, 32 * mebibyte, "only as much as the sockets' buffers hold")
    }))
}

it.effect("a body that arrives byte by byte ends with the deadline; another receiver is served meanwhile", () =>
  Effect.gen(function* () {
    const dripping = signal()
    const closed = signal()
    let drips = 0
    const slow = yield* serveTcp((socket) => {
      socket.on("close", closed.fire)
      socket.write(`${ok}content-length: 60000\r\n\r\n`)
      const drip = () => {
        if (socket.destroyed) return
        if (++drips === 50) dripping.fire()
        socket.write("x", () => setImmediate(drip))
      }
      drip()
    })
    const quick = yield* serveTcp((socket) => socket.write(`${ok}content-length: 2\r\n\r\nok`))
    const { send, sent } = yield* outboundOf()
    const outcome = send(at(slow))
    yield* dripping.wait
    assert.deepInclude(yield* sent(at(quick)), { status: 200, error: null })
    yield* TestClock.adjust("11 seconds")
    assert.deepInclude(yield* Effect.promise(() => outcome), { status: 200, error: "timeout" })
    yield* closed.wait
  }))

it.effect("a head that arrives byte by byte ends with the deadline", () =>
  Effect.gen(function* () {
    const dripping = signal()
    let drips = 0
    const slow = yield* serveTcp((socket) => {
      socket.write(`${ok}x: `)
      const drip = () => {
        if (socket.destroyed) return
        if (++drips === 20) dripping.fire()
        socket.write("y", () => setTimeout(drip, 1))
      }
      drip()
    })
    const { send } = yield* outboundOf()
    const outcome = send(at(slow))
    yield* dripping.wait
    yield* TestClock.adjust("11 seconds")
    assert.deepInclude(yield* Effect.promise(() => outcome), { status: null, error: "timeout" })
  }))
