import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { MachineId, Snowflake } from "effect/cluster"
import { TestClock } from "effect/testing"
import { CurrentRequest } from "../../../services/platform/CurrentRequest.ts"
import { asked } from "../../../src/actors/Asked.ts"

const origin = { requestId: "r-1", route: "PATCH /v1/webhooks/{id}" }

interface Command {
  readonly n: number
}

const handling = <A, E>(call: (command: Command) => Effect.Effect<A, E>) => asked<Command, A, E, never>(call)

/** A command sent now. */
const sent = Effect.map(Clock.currentTimeMillis, (timestamp) => ({
  requestId: Snowflake.make({ machineId: MachineId.make(1), sequence: 0, timestamp }),
  payload: { origin, n: 1 },
}))

describe("a command at its actor", () => {
  it.effect("runs in the name of the request that caused it, without its origin", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const handler = handling((command) => Effect.map(CurrentRequest, (request) => void seen.push(command, request)))
      yield* handler(yield* sent)
      assert.deepStrictEqual(seen, [{ n: 1 }, origin])
    }).pipe(TestClock.withLive))

  it.effect("is not begun once its sender has given it up", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1))
      const command = yield* sent
      let runs = 0
      const handler = handling(() => Effect.sync(() => void runs++))
      yield* TestClock.adjust(1_999)
      yield* handler(command)
      yield* TestClock.adjust(1)
      assert.isTrue(Exit.hasInterrupts(yield* Effect.exit(handler(command))))
      assert.strictEqual(runs, 1)
    }))

  it.effect("is ended when its sender gives it up, however long it waited before", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1))
      const command = yield* sent
      let ended = false
      yield* TestClock.adjust(1_500)
      const handler = handling(() => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (ended = true))))
      const fiber = yield* Effect.forkChild(handler(command))
      yield* TestClock.adjust(499)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      assert.isTrue(ended)
    }))
})
