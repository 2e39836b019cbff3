/**
 * Periodic maintenance of the lifecycle: retention, drift detection and lag metrics. Any number of processes may run
 * it.
 */
import { Effect, Layer } from "effect"
import { Drift } from "../../services/lifecycle/Drift.ts"
import { gaugeLag } from "../../services/lifecycle/Lag.ts"
import { LifecycleRetention } from "../../services/lifecycle/LifecycleRetention.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { every, loop } from "./Loop.ts"

const minute = 60_000

export const LifecycleMaintenance = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const { wide } = yield* Database
    const drift = yield* Drift
    const retention = yield* LifecycleRetention
    yield* every("lifecycle retention", 60 * minute, retention.prune)
    yield* loop("lifecycle drift", { wait: (max) => Effect.sleep(max) }, minute, drift.look)
    yield* every("lifecycle lag", minute, gaugeLag(wide))
  })).pipe(Layer.provide([LifecycleRetention.layer, Drift.layer])),
}
