/** Signs lifecycle events after their commit: on a wake-up signal, and every second. */
import { Effect, Layer } from "effect"
import { Messages } from "../../services/lifecycle/Messages.ts"
import { lifecycleTopic } from "../../services/lifecycle/Positions.ts"
import { Bells } from "../../services/platform/messaging/Bells.ts"
import { loop } from "./Loop.ts"

export const LifecycleSigner = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bells = yield* Bells
    const { signDue } = yield* Messages
    yield* loop("lifecycle signer", yield* bells.bell(lifecycleTopic), 1_000, signDue)
  })),
}
