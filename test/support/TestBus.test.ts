/** Tests of the test harness itself. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import { TestBus } from "./TestBus.ts"

const streamsOf = (url: Redacted.Redacted, make?: string) =>
  Effect.acquireUseRelease(
    Effect.promise(() => {
      const { host, username, password } = new URL(Redacted.value(url))
      return connect({ servers: host, user: username, pass: password })
    }),
    (connection) =>
      Effect.promise(async () => {
        const manager = await jetstreamManager(connection)
        if (make !== undefined) await manager.streams.add({ name: make, subjects: ["a.>"] })
        const names: Array<string> = []
        for await (const name of manager.streams.names()) names.push(name)
        return names
      }),
    (connection) => Effect.promise(() => connection.close()),
  )

describe("TestBus", () => {
  it.live("gives each test file streams and subjects of its own", () =>
    Effect.gen(function* () {
      const [one, two] = yield* Effect.all([TestBus.make, TestBus.make])
      assert.deepStrictEqual(yield* streamsOf(one.url, "EVENTS"), ["EVENTS"])
      assert.deepStrictEqual(yield* streamsOf(two.url), [])
      assert.deepStrictEqual(yield* streamsOf(two.url, "EVENTS"), ["EVENTS"])
    }))
})
