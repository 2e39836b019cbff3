/**
 * Jobs at the identity provider. A job is added by the transaction that needs it, claimed, marked as begun, done
 * outside any transaction, and settled under its claim. A call that certainly was not done is tried again, later each
 * time; a call that may have been done is `ambiguous` and never repeated automatically: it is reconciled with the saved
 * reference and target. Jobs of one project run one after another.
 *
 * Killed before `begun_at` commits: nothing was sent, the job is due again. Killed after it: ambiguous, when the lease
 * ends. Restored from a backup: a client that has to be made is looked for first, since it may have been made in the
 * lost time.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { ProjectId, ProviderJobId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { claimDue, claimed, freeExpired, release as releaseClaim, stopTime } from "../platform/database/Leases.ts"
import { performJob } from "./ProviderJobs/PerformJob.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"
import { type ClaimedJob, type JobRow, jobsTable, leaseMillis, type ProviderJobKind } from "./ProviderJobs/Rows.ts"
import { settleJob } from "./ProviderJobs/SettleJob.ts"

export { providerTopic } from "./ProviderJobs/Queue.ts"
export { type ProviderJobKind } from "./ProviderJobs/Rows.ts"

export class ProviderJobs extends Context.Service<ProviderJobs, {
  /** Adds a job in the current transaction; returns its id. A blocked job waits for `release`. */
  readonly add: (
    job: { readonly kind: ProviderJobKind; readonly projectId: ProjectId; readonly blocked?: boolean },
  ) => Effect.Effect<ProviderJobId, SqlError.SqlError>
  /** Releases a project's blocked jobs, in the current transaction. */
  readonly release: (projectId: ProjectId) => Effect.Effect<void, SqlError.SqlError>
  /** Ends a project's jobs that have not begun, since they are no longer needed. */
  readonly drop: (projectId: ProjectId, why: string) => Effect.Effect<void, SqlError.SqlError>
  /** Does due jobs; returns whether there may be more. */
  readonly work: Effect.Effect<boolean, SqlError.SqlError>
  /** Frees claims whose lease ended: jobs that had begun become ambiguous. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/projects/ProviderJobs") {
  static readonly layer = Layer.effect(
    ProviderJobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { add, drop, release } = yield* jobQueue
      const perform = yield* performJob
      const { markAmbiguous } = yield* settleJob

      // A stop waits a moment for the answers, so that a restart does not leave jobs ambiguous.
      const work = claimed({
        claim: claimDue<JobRow>(sql, jobsTable, {
          leaseMillis,
          limit: 4,
          also: sql`and t.state = 'pending' and not t.held and not exists (
            select from provider_jobs before where before.project_id = t.project_id and before.id < t.id
              and before.state in ('pending', 'ambiguous'))`,
        }),
        work: Effect.fnUntraced(function* (due: ReadonlyArray<ClaimedJob>) {
          // All run to their ends: a failure of one job must not cut off the calls of the others.
          const exits = yield* Effect.forEach(due, (job) => Effect.exit(perform(job)), { concurrency: 4 })
          yield* Effect.all(exits, { discard: true })
          return due.length > 0
        }),
        giveBack: Effect.fnUntraced(function* ([first]: ReadonlyArray<ClaimedJob>) {
          if (first === undefined) return
          yield* markAmbiguous(sql`claim = ${first.claim}`)
          yield* releaseClaim(sql, jobsTable, first.claim)
        }, sql.withTransaction),
        patience: stopTime,
      })

      const free = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* markAmbiguous(sql`claim is not null and lease_until < ${now}`)
        // Claims by a review (ReviewedJobs) whose process is gone: the job's state stays.
        yield* sql`
          update provider_jobs set claim = null, lease_until = null
          where claim is not null and lease_until < ${now} and state <> 'pending'`
        yield* freeExpired(sql, jobsTable)
      }).pipe(sql.withTransaction)

      return ProviderJobs.of({ add, release, drop, work, free })
    }),
  )
}
