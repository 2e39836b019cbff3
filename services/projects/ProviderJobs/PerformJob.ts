/** Performs a claimed provider job: reads its project, marks the job as begun, calls the provider, records the outcome. */
import { Clock, Effect } from "effect"
import { digestOf } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { type ClientTarget, ProviderFault } from "../IdentityProvider.ts"
import { callProvider } from "./CallProvider.ts"
import { type ProjectRow, targetOf } from "./JobTargets.ts"
import type { ClaimedJob } from "./Rows.ts"
import { settleJob } from "./SettleJob.ts"

export const performJob = Effect.gen(function* () {
  const { sql } = yield* Database
  const call = yield* callProvider
  const { fail, settle } = yield* settleJob

  /**
   * The job's project. `ended`: the client is to end, by a later job or because the project is over; the project's
   * row is read as well, since ids do not order jobs that two processes added at the same time. `doubtful`: the
   * database was restored or failed over since the job last changed, so the call may have been made in the lost
   * time.
   */
  const projectOf = Effect.fnUntraced(function* (job: ClaimedJob) {
    const [row] = yield* sql<ProjectRow & { readonly ended: boolean; readonly doubtful: boolean }>`
      select id, name, redirect_uris, post_logout_redirect_uris, backchannel_logout_uri, requested_scopes,
        removed or coalesce(state = 'withdrawn', false) or exists (
          select from provider_jobs later where later.project_id = projects.id
            and later.id > ${job.id}::uuid and later.kind = 'client.disable') as ended,
        (select coalesce(${job.updated_at} < coalesce(held_since, opened_at), false) from installation) as doubtful
      from projects where id = ${job.project_id}`
    return row
  })

  /** Records the target before the call is made; false where the claim is lost. */
  const begin = Effect.fnUntraced(function* ({ claim, id }: ClaimedJob, target: ClientTarget | null) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const begun = yield* sql`
      update provider_jobs set begun_at = ${now}, updated_at = ${now},
        target = ${target === null ? null : sql.json(target)}::jsonb,
        target_digest = ${target === null ? null : digestOf(target)}
      where id = ${id}::uuid and claim = ${claim} and lease_until > ${new Date(now.getTime() + 15_000)}
      returning 1`
    return begun.length > 0
  })

  /** Makes the call: records that it begins, calls, and records the outcome. */
  const ask = Effect.fnUntraced(function* (job: ClaimedJob, target: ClientTarget, doubtful: boolean) {
    if (!(yield* begin(job, target))) return
    yield* faultPoint("provider.begun")
    const answer = yield* Effect.result(call(job, target, doubtful))
    yield* faultPoint("provider.answered")
    if (answer._tag === "Success") yield* settle(job, target, answer.success)
    else if (answer.failure instanceof ProviderFault) yield* fail(job, answer.failure)
    else return yield* Effect.fail(answer.failure)
    yield* faultPoint("provider.settled")
  })

  return Effect.fnUntraced(function* (job: ClaimedJob) {
    const row = yield* projectOf(job)
    if (row === undefined) {
      return yield* fail(job, new ProviderFault({ reason: "refused", code: "no_such_project" }))
    }
    const target = targetOf(row)
    // The project is withdrawn: creating or updating its client now would leave one that no job disables.
    if (row.ended && job.kind !== "client.disable") return yield* settle(job, target, "superseded")
    yield* faultPoint("provider.claimed")
    yield* ask(job, target, row.doubtful)
  })
})
