/** Integrates decisions into the transparency log and publishes its checkpoints, four times a second. */
import { Effect, Layer } from "effect"
import { DecisionLog } from "../../services/transparency/DecisionLog.ts"
import { loop } from "./Loop.ts"

/** A decision is in a published checkpoint within a second. */
const pollMillis = 250

export const DecisionLogWorker = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { advance } = yield* DecisionLog
    yield* loop("decision log", { wait: (max) => Effect.sleep(max) }, pollMillis, advance)
  })),
}
