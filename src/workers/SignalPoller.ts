/** Polls identity providers for their security events. */
import { Effect, Layer } from "effect"
import { SignalPolling } from "../../services/signals/SignalPolling.ts"
import { loop } from "./Loop.ts"

const pollMillis = 1_000

export const SignalPoller = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { poll } = yield* SignalPolling
    yield* loop("signals", { wait: (max) => Effect.sleep(max) }, pollMillis, poll)
  })),
}
