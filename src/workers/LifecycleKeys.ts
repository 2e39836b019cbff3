/** Moves signing keys on: what is announced is told, what was acknowledged switches, what has verified long enough ends. */
import { Effect, Layer } from "effect"
import { KeyRotation } from "../../services/lifecycle/KeyRotation.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { loop } from "./Loop.ts"

const lookMillis = 5_000

export const LifecycleKeys = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const { advance } = yield* KeyRotation
    const turn = Effect.flatMap(clocks.read, ({ healthy }) => healthy ? advance : Effect.succeed(false))
    yield* loop("lifecycle keys", { wait: (max) => Effect.sleep(max) }, lookMillis, turn)
  })),
}
