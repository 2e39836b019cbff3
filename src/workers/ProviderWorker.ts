/** Runs the identity provider's jobs, on a wake-up signal or by polling; frees ended leases, and looks for drift. */
import { Effect, Layer } from "effect"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { ClientDrift } from "../../services/projects/ClientDrift.ts"
import { ProviderJobs, providerTopic } from "../../services/projects/ProviderJobs.ts"
import { every, loop } from "./Loop.ts"

export const ProviderWorker = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const wakeUps = yield* WakeUps
    const drift = yield* ClientDrift
    const jobs = yield* ProviderJobs
    yield* loop("provider", yield* wakeUps.waiter(providerTopic), 1_000, jobs.work)
    yield* every("provider's leases", 5_000, jobs.free)
    yield* every("client drift", 60_000, drift.look)
  })),
}
