/** Settles what became of claimed deliveries, and frees claims that ended without an outcome. */
import { Effect, Layer } from "effect"
import { Settlement } from "../../services/webhooks/Settlement.ts"
import { every } from "./Loop.ts"

export const WebhookSettlement = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const settlement = yield* Settlement
    yield* Effect.forkScoped(settlement.settling)
    yield* every("expired claims", 5_000, settlement.free)
  })),
}
