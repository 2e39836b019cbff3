/** Adds, releases and drops provider jobs, in the transaction that needs it. */
import { Clock, Effect } from "effect"
import { type ProjectId, ProviderJobId } from "../../../schemas/BrandedIds.ts"
import { WakeUps } from "../../platform/messaging/WakeUps.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import type { ProviderJobKind } from "./Rows.ts"
import { referenceOf } from "./JobTargets.ts"

/** The topic of the wake-up signal that added and released jobs send. */
export const providerTopic = "provider-jobs"

export const jobQueue = Effect.gen(function* () {
  const { sql } = yield* Database
  const wakeUps = yield* WakeUps
  const ids = yield* Ids

  const add = Effect.fn("ProviderJobs.add")(
    function* (
      { blocked = false, kind, projectId }: {
        readonly kind: ProviderJobKind
        readonly projectId: ProjectId
        readonly blocked?: boolean
      },
    ) {
      const id = ProviderJobId.make(yield* ids.next)
      const now = new Date(yield* Clock.currentTimeMillis)
      const reference = referenceOf(projectId)
      yield* sql`
        insert into provider_jobs (id, kind, project_id, state, held, reference, created_at, updated_at, not_before)
        values (${id}::uuid, ${kind}, ${projectId}, 'pending', ${blocked}, ${reference}, ${now}, ${now}, ${now})`
      yield* sql.afterCommit(wakeUps.notify(providerTopic))
      return id
    },
  )

  const release = Effect.fn("ProviderJobs.release")(function* (projectId: ProjectId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    // Leaves `updated_at` as it is: after a restore the job may have been released, and done, in the lost time.
    yield* sql`update provider_jobs set held = false, not_before = ${now} where project_id = ${projectId} and held`
    yield* sql.afterCommit(wakeUps.notify(providerTopic))
  })

  const drop = Effect.fn("ProviderJobs.drop")(function* (projectId: ProjectId, why: string) {
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      update provider_jobs set state = 'effective', held = false, last_error = ${why}, updated_at = ${now}
      where project_id = ${projectId} and state = 'pending' and claim is null and begun_at is null`
  })

  return { add, release, drop }
})
