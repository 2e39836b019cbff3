/**
 * Advances signing keys: announces new keys, switches projects that acknowledged them, and retires keys whose
 * verification period is over.
 */
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
