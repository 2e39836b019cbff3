/** The claim of a provider job by an operator's command, and who may make one. */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId, ProviderJobId } from "../../../schemas/BrandedIds.ts"
import type { JobState } from "../../../schemas/identity/Operation.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { roleRequired, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { type ClaimedJob, type JobRow, leaseMillis } from "../ProviderJobs/Rows.ts"

/** The code of a job that the reference could not decide: only then may an operator decide. */
export const unfindable = "unfindable"

export interface Reviewed {
  readonly personId: PersonId
  readonly jobId: ProviderJobId
  readonly reason: string
}

export const jobClaims = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles

  const mustOperate = Effect.fnUntraced(function* (personId: PersonId) {
    if (!(yield* roles.isOperator(personId))) return yield* roleRequired("an active operator")
  })

  const find = Effect.fnUntraced(function* (jobId: ProviderJobId) {
    if (!isUuid(jobId)) return yield* new NotFound()
    const [job] = yield* sql<JobRow>`select * from provider_jobs where id = ${jobId}::uuid`
    return job ?? (yield* new NotFound())
  })

  /** Claims an unclaimed job in one of the given states, until the job is settled or the lease ends. */
  const claim = Effect.fnUntraced(function* (jobId: ProviderJobId, ready: Statement.Fragment, allowed: JobState) {
    const job = yield* find(jobId)
    const now = yield* Clock.currentTimeMillis
    const [claimed] = yield* sql<ClaimedJob>`
      update provider_jobs set claim = nextval('claims'), lease_until = ${new Date(now + leaseMillis)}
      where id = ${job.id}::uuid and claim is null and ${ready} returning *`
    if (claimed !== undefined) return claimed
    return yield* new InvalidState({ state: job.claim === null ? job.state : "running", allowed: [allowed] })
  })

  const release = (job: ClaimedJob) =>
    Effect.ignore(
      sql`update provider_jobs set claim = null, lease_until = null where id = ${job.id}::uuid and claim = ${job.claim}`,
      { log: true },
    )

  /** The same until the scope closes, at the latest. */
  const claimInScope = (jobId: ProviderJobId, ready: Statement.Fragment, allowed: JobState) =>
    Effect.acquireRelease(claim(jobId, ready, allowed), release)

  return {
    mustOperate,
    find,
    claim,
    claimInScope,
    isAmbiguous: sql`state = 'ambiguous'`,
    /** SQL: the job's outcome cannot be found out any further, so an operator may decide. */
    isUndecidable: sql`(state = 'failed' or state = 'ambiguous' and last_error = ${unfindable})`,
  }
})
