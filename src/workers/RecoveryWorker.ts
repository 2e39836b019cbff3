/**
 * Detects a restored or failed-over database, and reopens the installation step by step: every second while it is held.
 */
import { Effect, Layer } from "effect"
import { Recovery } from "../../services/recovery/Recovery.ts"
import { every } from "./Loop.ts"

const heldMillis = 1_000
const openMillis = 5_000

export const RecoveryWorker = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { advance } = yield* Recovery
    yield* every(
      "recovery",
      heldMillis,
      Effect.flatMap(advance, (open) => open ? Effect.sleep(openMillis - heldMillis) : Effect.void),
    )
  })),
}
