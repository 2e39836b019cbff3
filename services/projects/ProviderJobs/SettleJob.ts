/** Records the outcome of a provider job: of its call, of a failed call, and of a call that was interrupted. */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { backoffMillis, settleFailed } from "../../platform/database/Leases.ts"
import { Vault } from "../../platform/security/Vault.ts"
import type { ClientTarget, ProviderFault, Seen } from "../IdentityProvider.ts"
import { type ClaimedJob, clients, type JobRow, jobsTable, maxAttempts } from "./Rows.ts"

/** The outcome of a call. */
export type JobOutcome = Seen | "disabled" | "nothing to do" | "superseded"

export const settleJob = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const known = clients(sql, yield* Vault)

  const recorded = (
    job: Pick<JobRow, "id" | "kind" | "project_id" | "attempts">,
    outcome: "done" | "failed",
    code: string,
  ) =>
    audit.append({
      action: `provider.${job.kind}`,
      actor: "system",
      subject: `job:${job.id}`,
      outcome,
      code,
      details: { project: job.project_id, attempts: job.attempts },
    })

  const settle = Effect.fnUntraced(function* (job: ClaimedJob, target: ClientTarget, done: JobOutcome) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const own = yield* sql`
      update provider_jobs set state = 'effective', claim = null, lease_until = null,
        last_error = ${done === "superseded" ? done : null}, updated_at = ${now}
      where id = ${job.id}::uuid and claim = ${job.claim} returning 1`
    if (own.length === 0) return
    if (done === "superseded") return yield* recorded(job, "done", done)
    if (done === "disabled") yield* known.disabled(job.project_id)
    else if (done !== "nothing to do") yield* known.keep(job.project_id, job.reference, done.client, target)
    yield* recorded(job, "done", done === "nothing to do" ? "nothing_to_do" : "effective")
  }, sql.withTransaction)

  /** A call that certainly was not done is due again later; after `maxAttempts`, or when refused, the job has failed. */
  const fail = Effect.fnUntraced(function* (job: ClaimedJob, { code, reason }: ProviderFault) {
    if (reason === "unavailable" && job.attempts < maxAttempts) {
      yield* sql`update provider_jobs set begun_at = null where id = ${job.id}::uuid and claim = ${job.claim}`
      const afterMillis = backoffMillis(job.attempts + 2)
      return yield* settleFailed(sql, jobsTable, job.claim, [{ key: job.id, afterMillis, error: code }])
    }
    const now = new Date(yield* Clock.currentTimeMillis)
    const own = yield* sql`
      update provider_jobs set state = ${reason === "unknown" ? "ambiguous" : "failed"}, claim = null,
        lease_until = null, last_error = ${code}, updated_at = ${now}
      where id = ${job.id}::uuid and claim = ${job.claim} returning 1`
    if (own.length > 0) yield* recorded(job, "failed", code)
  }, sql.withTransaction)

  /** Marks begun jobs of ended claims as ambiguous: their calls may have been done. */
  const markAmbiguous = Effect.fnUntraced(function* (ended: Statement.Fragment) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const lost = yield* sql<JobRow>`
      update provider_jobs set state = 'ambiguous', claim = null, lease_until = null, last_error = 'interrupted',
        updated_at = ${now}
      where ${ended} and begun_at is not null and state = 'pending' returning *`
    for (const job of lost) yield* recorded(job, "failed", "interrupted")
  })

  return { settle, fail, markAmbiguous }
})
