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
import type { SqlError, Statement } from "effect/sql"
import type { ProjectId, ProviderJobId } from "../../schemas/BrandedIds.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { digestOf } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import {
  backoffMillis,
  claimDue,
  claimed,
  freeExpired,
  type LeasedTable,
  release as releaseClaim,
  settleFailed,
  stopTime,
} from "../platform/database/Leases.ts"
import { Vault } from "../platform/security/Vault.ts"
import { type ClientTarget, IdentityProvider, ProviderFault, type Seen } from "./IdentityProvider.ts"
import { clients, type JobRow, maxAttempts, type ProviderJobKind } from "./ProviderJobs/Rows.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"
import { type ProjectRow, targetOf } from "./ProviderJobs/JobTargets.ts"

export { providerTopic } from "./ProviderJobs/Queue.ts"
export { type ProviderJobKind } from "./ProviderJobs/Rows.ts"

const jobsTable: LeasedTable = { table: "provider_jobs", key: "id", keyType: "uuid" }
export const leaseMillis = 30_000

type Claimed = JobRow & { readonly claim: bigint }

/** The outcome of a call. */
type Done = Seen | "disabled" | "nothing to do" | "superseded"

export class ProviderJobs extends Context.Service<ProviderJobs, {
  /** Adds a job in the current transaction; returns its id. A held job waits for `release`. */
  readonly add: (
    job: { readonly kind: ProviderJobKind; readonly projectId: ProjectId; readonly held?: boolean },
  ) => Effect.Effect<ProviderJobId, SqlError.SqlError>
  /** Releases a project's held jobs, in the current transaction. */
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
      const audit = yield* Audit
      const { add, drop, release } = yield* jobQueue
      const provider = yield* IdentityProvider
      const known = clients(sql, yield* Vault)

      /**
       * The job's project. `ended`: the client is to end, by a later job or because the project is over; the project's
       * row is read as well, since ids do not order jobs that two processes added at the same time. `doubtful`: the
       * database was restored or failed over since the job last changed, so the call may have been made in the lost
       * time.
       */
      const project = Effect.fnUntraced(function* (job: Claimed) {
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
      const begin = Effect.fnUntraced(function* ({ claim, id }: Claimed, target: ClientTarget | null) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const begun = yield* sql`
          update provider_jobs set begun_at = ${now}, updated_at = ${now},
            target = ${target === null ? null : sql.json(target)}::jsonb,
            target_digest = ${target === null ? null : digestOf(target)}
          where id = ${id}::uuid and claim = ${claim} and lease_until > ${new Date(now.getTime() + 15_000)}
          returning 1`
        return begun.length > 0
      })

      const create = Effect.fnUntraced(function* (job: Claimed, target: ClientTarget, doubtful: boolean) {
        const found = doubtful ? yield* provider.find(job.reference) : null
        if (found === "unfindable") return yield* new ProviderFault({ reason: "unknown", code: "restored" })
        return found === null ? yield* provider.create(target) : { client: found, observed: {} }
      })

      const call = Effect.fnUntraced(function* (
        job: Claimed,
        target: ClientTarget,
        doubtful: boolean,
      ): Effect.fn.Return<Done, ProviderFault | SqlError.SqlError> {
        const mine = yield* known.of(job.project_id)
        if (job.kind === "client.create") {
          // A disabled client stays disabled; a new one replaces it.
          if (mine !== null && !mine.disabled) return "nothing to do"
          return yield* create(job, target, doubtful)
        }
        if (mine === null || mine.disabled) return "nothing to do"
        if (job.kind === "client.update") {
          // An update must not take all redirect URIs from a client: that is done by withdrawing the project, and the
          // directory may have emptied them since this job was added (DirectoryWatch).
          if (target.redirect_uris.length === 0 && mine.expected.redirect_uris.length > 0) return "nothing to do"
          return yield* provider.update(mine.client, target)
        }
        return yield* Effect.as(provider.disable(mine.client), "disabled" as const)
      })

      const settled = (
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

      const settle = Effect.fnUntraced(function* (job: Claimed, target: ClientTarget, done: Done) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const own = yield* sql`
          update provider_jobs set state = 'effective', claim = null, lease_until = null,
            last_error = ${done === "superseded" ? done : null}, updated_at = ${now}
          where id = ${job.id}::uuid and claim = ${job.claim} returning 1`
        if (own.length === 0) return
        if (done === "superseded") return yield* settled(job, "done", done)
        if (done === "disabled") yield* known.disabled(job.project_id)
        else if (done !== "nothing to do") yield* known.keep(job.project_id, job.reference, done.client, target)
        yield* settled(job, "done", done === "nothing to do" ? "nothing_to_do" : "effective")
      }, sql.withTransaction)

      const fault = Effect.fnUntraced(function* (job: Claimed, { code, reason }: ProviderFault) {
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
        if (own.length > 0) yield* settled(job, "failed", code)
      }, sql.withTransaction)

      /** Makes the call: records that it begins, calls, and records the outcome. */
      const ask = Effect.fnUntraced(function* (job: Claimed, target: ClientTarget, doubtful: boolean) {
        if (!(yield* begin(job, target))) return
        yield* faultPoint("provider.begun")
        const answer = yield* Effect.result(call(job, target, doubtful))
        yield* faultPoint("provider.answered")
        if (answer._tag === "Success") yield* settle(job, target, answer.success)
        else if (answer.failure instanceof ProviderFault) yield* fault(job, answer.failure)
        else return yield* Effect.fail(answer.failure)
        yield* faultPoint("provider.settled")
      })

      const perform = Effect.fnUntraced(function* (job: Claimed) {
        const row = yield* project(job)
        if (row === undefined) {
          return yield* fault(job, new ProviderFault({ reason: "refused", code: "no_such_project" }))
        }
        const target = targetOf(row)
        // The project is withdrawn: creating or updating its client now would leave one that no job disables.
        if (row.ended && job.kind !== "client.disable") return yield* settle(job, target, "superseded")
        yield* faultPoint("provider.claimed")
        yield* ask(job, target, row.doubtful)
      })

      /** Marks begun jobs of ended claims as ambiguous: their calls may have been done. */
      const clouded = Effect.fnUntraced(function* (ended: Statement.Fragment) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const lost = yield* sql<JobRow>`
          update provider_jobs set state = 'ambiguous', claim = null, lease_until = null, last_error = 'interrupted',
            updated_at = ${now}
          where ${ended} and begun_at is not null and state = 'pending' returning *`
        for (const job of lost) yield* settled(job, "failed", "interrupted")
      })

      // A stop waits a moment for the answers, so that a restart does not leave jobs ambiguous.
      const work = claimed({
        claim: claimDue<JobRow>(sql, jobsTable, {
          leaseMillis,
          limit: 4,
          also: sql`and t.state = 'pending' and not t.held and not exists (
            select from provider_jobs before where before.project_id = t.project_id and before.id < t.id
              and before.state in ('pending', 'ambiguous'))`,
        }),
        work: Effect.fnUntraced(function* (due: ReadonlyArray<Claimed>) {
          // All run to their ends: a failure of one job must not cut off the calls of the others.
          const exits = yield* Effect.forEach(due, (job) => Effect.exit(perform(job)), { concurrency: 4 })
          yield* Effect.all(exits, { discard: true })
          return due.length > 0
        }),
        giveBack: Effect.fnUntraced(function* ([first]: ReadonlyArray<Claimed>) {
          if (first === undefined) return
          yield* clouded(sql`claim = ${first.claim}`)
          yield* releaseClaim(sql, jobsTable, first.claim)
        }, sql.withTransaction),
        patience: stopTime,
      })

      const free = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* clouded(sql`claim is not null and lease_until < ${now}`)
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
