/**
 * An operator's commands on a provider job that failed or is ambiguous (docs/identity.md): first look at the provider
 * with the saved reference (`reconcile`), and only where that cannot decide, or the provider refused for good, send the
 * job again (`retry`) or name the client that it made (`repair`). Each needs an operator and a reason, and the audit
 * records both.
 *
 * `reconcile` and `repair` only read at the provider, outside any transaction and under a claim of the job, which ends
 * with the scope; the effect that they return settles the job in the caller's transaction. So after a 504 nothing was
 * done, and the request may be repeated with the same key. `retry` runs entirely in the caller's transaction.
 */
import { Clock, Context, Effect, Layer, type Redacted, type Scope } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { PersonId, ProjectId, ProviderJobId } from "../../schemas/BrandedIds.ts"
import type { Job, JobState } from "../../schemas/identity/Operation.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState, OutcomeUnknown, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { roleRequired, Roles } from "../people/Roles.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { Vault } from "../platform/security/Vault.ts"
import { IdentityProvider, type KnownClient, ProviderFault } from "./IdentityProvider.ts"
import { leaseMillis, providerTopic } from "./ProviderJobs.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"
import { clients, type JobRow, viewOf } from "./ProviderJobs/Rows.ts"
import { driftOf } from "./ProviderJobs/JobTargets.ts"

/** The code of a job that the reference could not decide: only then may an operator decide. */
export const unfindable = "unfindable"

export interface Reviewed {
  readonly personId: PersonId
  readonly jobId: ProviderJobId
  readonly reason: string
}

type Fault = NotFound | RoleRequired | InvalidState | SqlError.SqlError
type Claimed = JobRow & { readonly claim: bigint }

/** The new state of an ambiguous job, by the provider's state. */
type Verdict =
  | { readonly to: "effective"; readonly client?: KnownClient; readonly disabled?: boolean }
  | { readonly to: "pending" | "ambiguous"; readonly code: string }

const isRefusal = (error: unknown): error is ProviderFault =>
  error instanceof ProviderFault && error.reason === "refused"

/** Settles a job by the findings, in the current transaction. */
export type Settlement = Effect.Effect<Job, Fault>

export class ReviewedJobs extends Context.Service<ReviewedJobs, {
  /** OutcomeUnknown where the provider does not answer: the job stays as it is. */
  readonly reconcile: (reviewed: Reviewed) => Effect.Effect<Settlement, Fault | OutcomeUnknown, Scope.Scope>
  readonly retry: (reviewed: Reviewed) => Effect.Effect<Job, Fault>
  /**
   * Names the client that the provider made, as its operator reads it there; 422 where the provider has no such client,
   * or the client belongs to another project. For a job that disables: confirms that the client is gone; 422 where it
   * is not.
   */
  readonly repair: (
    reviewed: Reviewed & {
      readonly clientId: string
      readonly managementUri: string | null
      readonly managementToken: Redacted.Redacted | null
    },
  ) => Effect.Effect<Settlement, Fault | OutcomeUnknown | HTTPValidationError, Scope.Scope>
}>()("bailiwick/services/projects/ReviewedJobs") {
  static readonly layer = Layer.effect(
    ReviewedJobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const bells = yield* WakeUps
      const jobs = yield* jobQueue
      const provider = yield* IdentityProvider
      const roles = yield* Roles
      const known = clients(sql, yield* Vault)

      const operator = Effect.fnUntraced(function* (personId: PersonId) {
        if (!(yield* roles.isOperator(personId))) return yield* roleRequired("an active operator")
      })

      const find = Effect.fnUntraced(function* (jobId: ProviderJobId) {
        if (!isUuid(jobId)) return yield* new NotFound()
        const [job] = yield* sql<JobRow>`select * from provider_jobs where id = ${jobId}::uuid`
        return job ?? (yield* new NotFound())
      })

      /** Claims an unclaimed job in one of the given states, until the scope closes or the job is settled. */
      const take = Effect.fnUntraced(function* (jobId: ProviderJobId, ready: Statement.Fragment, allowed: JobState) {
        const job = yield* find(jobId)
        const now = yield* Clock.currentTimeMillis
        const [taken] = yield* sql<Claimed>`
          update provider_jobs set claim = nextval('claims'), lease_until = ${new Date(now + leaseMillis)}
          where id = ${job.id}::uuid and claim is null and ${ready} returning *`
        if (taken !== undefined) return taken
        return yield* new InvalidState({ state: job.claim === null ? job.state : "running", allowed: [allowed] })
      })

      const letGo = (job: Claimed) =>
        Effect.ignore(
          sql`update provider_jobs set claim = null, lease_until = null where id = ${job.id}::uuid and claim = ${job.claim}`,
          { log: true },
        )

      const held = (jobId: ProviderJobId, ready: Statement.Fragment, allowed: JobState) =>
        Effect.acquireRelease(take(jobId, ready, allowed), letGo)

      /** Disables a client that was found late: a job that should have disabled it found no client then. */
      const endAgain = Effect.fnUntraced(function* ({ id, project_id: projectId }: Claimed) {
        const [ended] = yield* sql`
          select from provider_jobs where project_id = ${projectId} and id > ${id}::uuid and kind = 'client.disable'
            and state = 'effective' limit 1`
        if (ended !== undefined) yield* jobs.add({ kind: "client.disable", projectId })
      })

      const ambiguous = sql`state = 'ambiguous'`
      /** SQL: the job's outcome cannot be found out any further, so an operator may decide. */
      const decided = sql`(state = 'failed' or state = 'ambiguous' and last_error = ${unfindable})`

      const settle = Effect.fnUntraced(function* (job: Claimed, by: Reviewed, action: string, verdict: Verdict) {
        // The person may have ceased to be an operator while the provider answered.
        yield* operator(by.personId)
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
          yield* endAgain(job)
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
        yield* sql.afterCommit(bells.ring(providerTopic))
        return viewOf(after)
      })

      const created = Effect.fnUntraced(function* (job: Claimed): Effect.fn.Return<Verdict, ProviderFault> {
        const found = yield* provider.find(job.reference)
        if (found === unfindable) return { to: "ambiguous", code: unfindable }
        return found === null ? { to: "pending", code: "not_done" } : { to: "effective", client: found }
      })

      /**
       * Reads the client at the provider; a new management credential in the answer is stored whatever becomes of the
       * job.
       */
      const read = Effect.fnUntraced(function* (projectId: ProjectId, client: KnownClient) {
        const seen = yield* provider.read(client)
        if (seen !== null) yield* known.renew(projectId, client, seen.client)
        return seen
      })

      const verdict = Effect.fnUntraced(
        function* (job: Claimed): Effect.fn.Return<Verdict, ProviderFault | SqlError.SqlError> {
          const mine = yield* known.of(job.project_id)
          const live = mine === null || mine.disabled ? null : mine.client
          if (job.kind === "client.create") return live === null ? yield* created(job) : { to: "effective" }
          if (live === null) return { to: "effective" }
          const seen = yield* read(job.project_id, live)
          if (job.kind === "client.disable") {
            return seen === null ? { to: "effective", disabled: true } : { to: "pending", code: "not_done" }
          }
          return seen !== null && job.target !== null && driftOf(job.target, seen.observed).length === 0
            ? { to: "effective", client: seen.client }
            : { to: "pending", code: "not_done" }
        },
      )

      /** Makes a provider's fault OutcomeUnknown, which leaves the job as it is. */
      const answered = <A, E>(job: Claimed, asked: Effect.Effect<A, E | ProviderFault>) =>
        Effect.mapError(
          asked,
          (error): Exclude<E, ProviderFault> | OutcomeUnknown =>
            error instanceof ProviderFault
              ? new OutcomeUnknown({ job_id: job.id })
              : error as Exclude<E, ProviderFault>,
        )

      const reconcile = Effect.fn("ReviewedJobs.reconcile")(function* (by: Reviewed) {
        yield* operator(by.personId)
        const job = yield* held(by.jobId, ambiguous, "ambiguous")
        // A provider that refuses to answer has decided nothing: from here on an operator may decide.
        const found = Effect.catchIf(
          verdict(job),
          isRefusal,
          () => Effect.succeed<Verdict>({ to: "ambiguous", code: unfindable }),
        )
        return settle(job, by, "reconcile", yield* answered(job, found))
      })

      const retry = Effect.fn("ReviewedJobs.retry")(function* (by: Reviewed) {
        yield* operator(by.personId)
        const job = yield* take(by.jobId, decided, "failed")
        return yield* settle(job, by, "retry", { to: "pending", code: "retried" })
      })

      const repair = Effect.fn("ReviewedJobs.repair")(function* (
        { clientId, managementToken, managementUri, ...by }: Parameters<ReviewedJobs["Service"]["repair"]>[0],
      ) {
        yield* operator(by.personId)
        const job = yield* held(by.jobId, decided, "failed")
        const ends = job.kind === "client.disable"
        if (managementUri !== null && !provider.manages(managementUri)) {
          return yield* HTTPValidationError.at(
            ["body", "registration_client_uri"],
            "value_error",
            "Value error, not an address of the provider",
          )
        }
        const wrong = (fault: string) => HTTPValidationError.at(["body", "client_id"], "value_error", fault)
        const mine = yield* known.of(job.project_id)
        // Only the known client may be confirmed as gone: otherwise the known client would stay enabled.
        if (ends && mine !== null && mine.client.clientId !== clientId) {
          return yield* wrong("Value error, not the client of this project")
        }
        const same = mine?.client.clientId === clientId ? mine.client : null
        const client = {
          clientId,
          managementUri: managementUri ?? same?.managementUri ?? null,
          managementToken: managementToken ?? same?.managementToken ?? null,
        }
        const asked = Effect.catchIf(read(job.project_id, client), isRefusal, () => Effect.succeed(null))
        const seen = yield* answered(job, asked)
        if (ends) {
          if (seen !== null) return yield* wrong("Value error, the client is still there")
          return settle(job, by, "repair", { to: "effective", disabled: true })
        }
        if (seen === null) return yield* wrong("Value error, no such client")
        const reference = seen.observed["software_id"] ?? job.reference
        const [other] = yield* sql`
          select from provider_clients where client_id = ${clientId} and project_id <> ${job.project_id}`
        if (reference !== job.reference || other !== undefined) {
          return yield* wrong("Value error, the client of another project")
        }
        return settle(job, by, "repair", { to: "effective", client: seen.client })
      })

      return ReviewedJobs.of({ reconcile, retry, repair })
    }),
  )
}
