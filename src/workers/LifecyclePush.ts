/** Pushes events to streams: on a wake-up signal, every second, and when a stream's claim is released. */
import { Effect, Layer } from "effect"
import { StreamPush } from "../../services/event-streams/StreamPush.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { every, loop } from "./Loop.ts"

export const LifecyclePush = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const { waiter, free, turn } = yield* StreamPush
    const healthyTurn = Effect.flatMap(clocks.read, ({ healthy }) => healthy ? turn : Effect.succeed(false))
    yield* loop("lifecycle push", waiter, 1_000, healthyTurn)
    yield* every("lifecycle push's claims", 1_000, free)
  })),
}
