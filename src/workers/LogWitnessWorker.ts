/** Asks the configured witnesses to cosign the newest checkpoint of the transparency log. */
import { Effect, Layer } from "effect"
import { Witnesses } from "../../services/transparency/Witnesses.ts"
import { loop } from "./Loop.ts"

const pollMillis = 250

export const LogWitnessWorker = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { ask } = yield* Witnesses
    yield* loop("log witnesses", { wait: (max) => Effect.sleep(max) }, pollMillis, ask)
  })),
}
