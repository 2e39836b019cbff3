import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { buildConnector } from "undici"
import * as TrustedConnections from "../../../../services/platform/Outbound/TrustedConnections.ts"
import { type ExchangeOutcome, HttpExchange } from "../../../../services/platform/Outbound/HttpExchange.ts"
import { serve } from "./LoopbackServers.ts"

const connect = buildConnector({
  allowH2: false,
  lookup: (_, options, callback) =>
    options.all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4),
})
const limits = { keepOnSuccess: 10, keepOnFailure: 10, read: 100 }

describe("undici's connections to the operator's URLs", () => {
  it.effect("are kept for the next exchange, and replaced after five minutes", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("ok"))
      const dispatch = yield* TrustedConnections.make(connect)
      const origin = `http://h.test:${server.port}`
      const send = Effect.promise(() =>
        new Promise<ExchangeOutcome>((resolve) =>
          dispatch(
            origin,
            { origin, path: "/", method: "POST" },
            new HttpExchange(limits, () => 0, (_, outcome) => resolve(outcome)),
          )
        )
      )
      for (const [wait, connections] of [[0, 1], [0, 1], [299_999, 1], [1, 2], [0, 2]] as const) {
        yield* TestClock.adjust(wait)
        assert.strictEqual((yield* send).status, 200)
        assert.strictEqual(server.seen.connections, connections)
      }
    }))

  it.effect("are bounded: 3,000 origins have at most about 1,024 connections at a time", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("ok"))
      const dispatch = yield* TrustedConnections.make(connect)
      const send = (index: number) =>
        new Promise<ExchangeOutcome>((resolve) => {
          const origin = `http://h${index}.test:${server.port}`
          dispatch(
            origin,
            { origin, path: "/", method: "POST" },
            new HttpExchange(limits, () => 0, (_, outcome) => resolve(outcome)),
          )
        })
      let failed = 0
      const total = 3_000
      for (let start = 0; start < total; start += 50) {
        const outcomes = yield* Effect.promise(() =>
          Promise.all(Array.from({ length: 50 }, (_, index) => send(start + index)))
        )
        failed += outcomes.filter(({ error, status }) => error !== null || status !== 200).length
      }
      assert.strictEqual(failed, 0)
      assert.strictEqual(server.requests.length, total)
      assert.isAtMost(server.seen.peak, 1_024 + 100, "those of one Agent, and those that are closing")
    }))
})
