import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { buildConnector } from "undici"
import * as Connections from "../../../../services/platform/Outbound/Connections.ts"
import { Exchange, type Settled } from "../../../../services/platform/Outbound/Exchange.ts"
import { serve } from "./servers.ts"

describe("Connections", () => {
  it.effect("holds a bounded number of origins, whatever number of names is used", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("ok"))
      const connect = buildConnector({
        allowH2: false,
        lookup: (_, options, callback) =>
          options.all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4),
      })
      const dispatch = yield* Connections.make(connect)
      const limits = { keepOnSuccess: 10, keepOnFailure: 10, read: 100 }
      const send = (index: number) =>
        new Promise<Settled>((resolve) => {
          const origin = `http://h${index}.test:${server.port}`
          dispatch(
            origin,
            { origin, path: "/", method: "POST" },
            new Exchange(limits, () => 0, (_, settled) => resolve(settled)),
          )
        })
      let failed = 0
      const total = 3_000
      for (let start = 0; start < total; start += 50) {
        const settled = yield* Effect.promise(() =>
          Promise.all(Array.from({ length: 50 }, (_, index) => send(start + index)))
        )
        failed += settled.filter(({ error, status }) => error !== null || status !== 200).length
      }
      assert.strictEqual(failed, 0)
      assert.strictEqual(server.requests.length, total)
      assert.isAtMost(server.seen.peak, 1_024 + 100, "a generation, and those that are closing")
    }))
})
