import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Schema } from "effect"
import { Entity, MachineId, Snowflake } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TestClock } from "effect/testing"
import { Origin } from "../../../schemas/actors/DomainActor.ts"
import { CurrentRequest } from "../../../services/platform/observability/CurrentRequest.ts"
import { Mailbox, send } from "../../../services/platform/messaging/Mailbox.ts"
import { asked } from "../../../src/actors/Asked.ts"
import { singleProcess } from "../../../src/actors/Cluster.ts"

const origin = { requestId: "r-1", route: "POST /v1/domains/{id}/transfer" }

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
  it.effect("runs under the request id of its cause, without the request's origin", () =>
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

  it.effect("is interrupted when its sender gives it up, however long it waited before", () =>
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

  it.live(
    "is not repeated after a defect: the sender asks the service, and the next command is served",
    () => {
      const Actor = Entity.make("Fallible", [
        Rpc.make("Do", { payload: { origin: Origin, n: Schema.Int }, success: Schema.String }),
      ])
      let failed = 0
      const actor = Actor.toLayer(Actor.of({
        Do: asked(({ n }) =>
          Effect.suspend(() => n === 1 ? Effect.die(new Error(`the ${++failed}th`)) : Effect.succeed("the actor"))
        ),
      }))
      return Effect.gen(function* () {
        const client = yield* Actor.client
        const command = (n: number) => send(client("one").Do({ origin, n }), Effect.succeed("the service"))
        assert.deepStrictEqual([yield* command(1), yield* command(2), failed], ["the service", "the actor", 1])
      }).pipe(
        Effect.provideService(Mailbox, { timeoutMillis: 60_000 }),
        Effect.provide(Layer.provideMerge(actor, singleProcess)),
        Effect.scoped,
      )
    },
    30_000,
  )
})
