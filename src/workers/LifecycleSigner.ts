/** Signs lifecycle events after their commit: on a wake-up signal, and every second. */
import { Effect, Layer } from "effect"
import { EventSigner } from "../../services/lifecycle/EventSigner.ts"
import { lifecycleTopic } from "../../services/lifecycle/EventLog.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { loop } from "./Loop.ts"

export const LifecycleSigner = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const wakeUps = yield* WakeUps
    const { signDue } = yield* EventSigner
    yield* loop("lifecycle signer", yield* wakeUps.waiter(lifecycleTopic), 1_000, signDue)
  })),
}
