import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { at, outboundOf, signal } from "./OutboundOf.ts"
import { serve, serveTcp } from "./LoopbackServers.ts"

describe("the deadline", () => {
  const unanswered = Effect.fnUntraced(function* () {
    const arrived = yield* Deferred.make<() => void>()
    const closed = signal()
    const server = yield* serve((_, response) => {
      response.on("close", closed.fire)
      Deferred.doneUnsafe(arrived, Effect.succeed(() => void response.end("late")))
    })
    const outbound = yield* outboundOf()
    return { outcome: outbound.send(at(server)), answer: yield* Deferred.await(arrived), closed }
  })

  it.effect("accepts a response after 9 s", () =>
    Effect.gen(function* () {
      const { answer, outcome } = yield* unanswered()
      yield* TestClock.adjust("9 seconds")
      answer()
      assert.deepInclude(yield* Effect.promise(() => outcome), { status: 200, error: null, durationMs: 9_000 })
    }))

  it.effect("fails a request without a response after 10 s, and closes its connection", () =>
    Effect.gen(function* () {
      const { closed, outcome } = yield* unanswered()
      yield* TestClock.adjust("11 seconds")
      assert.deepInclude(yield* Effect.promise(() => outcome), { status: null, error: "timeout", durationMs: 10_000 })
      yield* closed.wait
    }))

  it.effect("counts from each request's own start", () =>
    Effect.gen(function* () {
      const arrivals = [signal(), signal()]
      const server = yield* serve(() => arrivals[server.requests.length - 1]!.fire())
      const outbound = yield* outboundOf()
      const ended: Array<string> = []
      const send = (name: string) =>
        outbound.send(at(server)).then(({ durationMs }) => ended.push(`${name} ${durationMs}`))
      const first = send("first")
      yield* arrivals[0]!.wait
      yield* TestClock.adjust("500 millis")
      const second = send("second")
      yield* arrivals[1]!.wait
      yield* TestClock.adjust("9500 millis")
      yield* Effect.promise(() => first)
      assert.deepStrictEqual(ended, ["first 10000"])
      yield* TestClock.adjust("500 millis")
      yield* Effect.promise(() => second)
      assert.deepStrictEqual(ended, ["first 10000", "second 10000"])
    }))

  it.effect("covers a body that arrives byte by byte", () =>
    Effect.gen(function* () {
      const closed = signal()
      let drips = 0
      const dripping = signal()
      const server = yield* serve((_, response) => {
        const drip = () => {
          if (response.destroyed) return
          response.write("d")
          if (++drips === 50) dripping.fire()
          setImmediate(drip)
        }
        response.on("close", closed.fire)
        drip()
      })
      const outbound = yield* outboundOf()
      const outcome = outbound.send(at(server))
      yield* dripping.wait
      yield* TestClock.adjust("11 seconds")
      assert.deepInclude(yield* Effect.promise(() => outcome), { error: "timeout" })
      yield* closed.wait
    }))

  it.effect("covers a TLS handshake that never ends", () =>
    Effect.gen(function* () {
      const greeted = signal()
      const server = yield* serveTcp(() => greeted.fire())
      const outbound = yield* outboundOf()
      const outcome = outbound.send(`https://127.0.0.1:${server.port}/`)
      yield* greeted.wait
      yield* TestClock.adjust("10 seconds")
      assert.deepInclude(yield* Effect.promise(() => outcome), { status: null, error: "timeout" })
    }))

  it.effect("expires a request in flight when the service closes", () =>
    Effect.gen(function* () {
      const arrived = signal()
      const server = yield* serve(() => arrived.fire())
      const outcome = yield* Effect.scoped(Effect.gen(function* () {
        const outbound = yield* outboundOf()
        const sending = outbound.send(at(server))
        yield* arrived.wait
        return { sending }
      }))
      assert.deepInclude(yield* Effect.promise(() => outcome.sending), { status: null, error: "timeout" })
    }))

  it.effect("closes a connection in its TLS handshake when the service closes", () =>
    Effect.gen(function* () {
      const greeted = signal()
      const closed = signal()
      const server = yield* serveTcp((socket) => {
        socket.on("close", closed.fire)
        greeted.fire()
      })
      const { sending } = yield* Effect.scoped(Effect.gen(function* () {
        const outbound = yield* outboundOf()
        const sending = outbound.send(`https://127.0.0.1:${server.port}/`)
        yield* greeted.wait
        return { sending }
      }))
      assert.deepInclude(yield* Effect.promise(() => sending), { status: null, error: "timeout" })
      yield* closed.wait
    }))
})
