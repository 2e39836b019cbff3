/** Settles a provider job that an operator claimed, in the current transaction. */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Job } from "../../../schemas/identity/Operation.ts"
import type { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, type RoleRequired } from "../../../schemas/problems/IdentityProblems.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { WakeUps } from "../../platform/messaging/WakeUps.ts"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import type { KnownClient } from "../IdentityProvider.ts"
import { jobQueue, providerTopic } from "../ProviderJobs/Queue.ts"
import { type ClaimedJob, clients, type JobRow, viewOf } from "../ProviderJobs/Rows.ts"
import { jobClaims, type Reviewed } from "./JobClaims.ts"

export type ReviewFault = NotFound | RoleRequired | InvalidState | SqlError.SqlError

/** Settles a job by the findings, in the current transaction. */
export type Settlement = Effect.Effect<Job, ReviewFault>

/** The new state of an ambiguous job, by the provider's state. */
export type Verdict =
  | { readonly to: "effective"; readonly client?: KnownClient; readonly disabled?: boolean }
  | { readonly to: "pending" | "ambiguous"; readonly code: string }

export const settleReviewedJob = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const wakeUps = yield* WakeUps
  const jobs = yield* jobQueue
  const known = clients(sql, yield* Vault)
  const { find, mustOperate } = yield* jobClaims

  /** Disables a client that was found late: a job that should have disabled it found no client then. */
  const disableAgain = Effect.fnUntraced(function* ({ id, project_id: projectId }: ClaimedJob) {
    const [ended] = yield* sql`
      select from provider_jobs where project_id = ${projectId} and id > ${id}::uuid and kind = 'client.disable'
        and state = 'effective' limit 1`
    if (ended !== undefined) yield* jobs.add({ kind: "client.disable", projectId })
  })

  return Effect.fnUntraced(function* (job: ClaimedJob, by: Reviewed, action: string, verdict: Verdict) {
    // The person may have ceased to be an operator while the provider answered.
    yield* mustOperate(by.personId)
    const now = new Date(yield* Clock.currentTimeMillis)
    const code = verdict.to === "effective" ? null : verdict.code
    const [after] = yield* sql<JobRow>`
      update provider_jobs set state = ${verdict.to}, claim = null, lease_until = null, last_error = ${code},
        begun_at = case when ${verdict.to} = 'pending' then null else begun_at end,
        attempts = case when ${verdict.to} = 'pending' then 0 else attempts end,
        not_before = ${now}, updated_at = ${now}
      where id = ${job.id}::uuid and claim = ${job.claim} returning *`
    if (after === undefined) {
      // The claim has ended: the provider took longer than its lease.
      const { state } = viewOf(yield* find(job.id))
      return yield* new InvalidState({ state, allowed: [job.state] })
    }
    if (verdict.to === "effective" && verdict.client !== undefined && job.target !== null) {
      yield* known.keep(job.project_id, job.reference, verdict.client, job.target)
      yield* disableAgain(job)
    }
    if (verdict.to === "effective" && verdict.disabled === true) yield* known.disabled(job.project_id)
    yield* audit.append({
      action: `provider-job.${action}`,
      actor: `person:${by.personId}`,
      subject: `job:${job.id}`,
      outcome: "done",
      code: code ?? "effective",
      details: { project: job.project_id, reason: by.reason },
    })
    yield* sql.afterCommit(wakeUps.notify(providerTopic))
    return viewOf(after)
  })
})
