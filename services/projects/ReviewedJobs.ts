/**
 * What an operator may do about a provider job that failed or is ambiguous (specification 000, Errors 2): look at the
 * provider with the saved reference first (`reconcile`), and only where that cannot decide, or the provider refused for
 * good, send it again (`retry`) or name the client that it made (`repair`). Each is reviewed: an operator, a reason, an
 * audit record.
 *
 * `reconcile` and `repair` ask the provider outside any transaction, under a claim of the job; `retry` runs in the
 * caller's.
 */
import { Clock, Context, Effect, Layer, type Redacted } from "effect"
import type { SqlError } from "effect/sql"
import type { Job } from "../../schemas/identity/Operations.ts"
import { NotFound } from "../../schemas/problems/Floor.ts"
import { InvalidState, OutcomeUnknown, RoleRequired } from "../../schemas/problems/Identity.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Roles } from "../people/Roles.ts"
import { Audit } from "../platform/Audit.ts"
import { Bells } from "../platform/Bells.ts"
import { Database } from "../platform/Database.ts"
import { Vault } from "../platform/Vault.ts"
import { type ClientTarget, IdentityProvider, type KnownClient, ProviderFault } from "./IdentityProvider.ts"
import { leaseMillis, providerTopic } from "./ProviderJobs.ts"
import { clients, type JobRow, viewOf } from "./ProviderJobs/Rows.ts"
import { driftOf } from "./ProviderJobs/Targets.ts"

/** Why the reference could not decide: then, and only then, an operator may. */
export const unfindable = "unfindable"

export interface Reviewed {
  readonly personId: string
  readonly jobId: string
  readonly reason: string
}

type Fault = NotFound | RoleRequired | InvalidState | SqlError.SqlError
type Claimed = JobRow & { readonly claim: bigint }

/** What the provider's state makes of an ambiguous job. */
type Verdict =
  | { readonly to: "effective"; readonly client?: KnownClient; readonly disabled?: boolean }
  | { readonly to: "pending" | "failed" | "ambiguous"; readonly code: string }

const isRefusal = (error: unknown): error is ProviderFault =>
  error instanceof ProviderFault && error.reason === "refused"

export class ReviewedJobs extends Context.Service<ReviewedJobs, {
  /** OutcomeUnknown where the provider does not answer: the job stays as it is. */
  readonly reconcile: (reviewed: Reviewed) => Effect.Effect<Job, Fault | OutcomeUnknown>
  readonly retry: (reviewed: Reviewed) => Effect.Effect<Job, Fault>
  /**
   * The client that the provider made, as its operator reads it there; 422 where the provider knows no such client. Of
   * one that was to end: that it is gone; 422 where it is still there.
   */
  readonly repair: (
    reviewed: Reviewed & {
      readonly clientId: string
      readonly managementUri: string | null
      readonly managementToken: Redacted.Redacted | null
    },
  ) => Effect.Effect<Job, Fault | OutcomeUnknown | HTTPValidationError>
}>()("bailiwick/services/projects/ReviewedJobs") {
  static readonly layer = Layer.effect(
    ReviewedJobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const bells = yield* Bells
      const provider = yield* IdentityProvider
      const roles = yield* Roles
      const known = clients(sql, yield* Vault)

      const operator = Effect.fnUntraced(function* (personId: string) {
        if (!(yield* roles.isOperator(personId))) return yield* new RoleRequired()
      })

      const find = Effect.fnUntraced(function* (jobId: string) {
        if (!isUuid(jobId)) return yield* new NotFound()
        const [job] = yield* sql<JobRow>`select * from provider_jobs where id = ${jobId}::uuid`
        return job ?? (yield* new NotFound())
      })

      /** Takes the job for as long as the provider may take; only in a state that this is for, and only unclaimed. */
      const take = Effect.fnUntraced(function* (jobId: string, states: ReadonlyArray<string>) {
        const job = yield* find(jobId)
        const now = yield* Clock.currentTimeMillis
        const [taken] = yield* sql<Claimed>`
          update provider_jobs set claim = nextval('claims'), lease_until = ${new Date(now + leaseMillis)}
          where id = ${job.id}::uuid and claim is null and state = any(${[...states]}::text[]) returning *`
        return taken ?? (yield* new InvalidState({ state: viewOf(job).state, allowed: [...states] }))
      })

      const settle = Effect.fnUntraced(function* (job: Claimed, by: Reviewed, action: string, verdict: Verdict) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const code = verdict.to === "effective" ? null : verdict.code
        const [after] = yield* sql<JobRow>`
          update provider_jobs set state = ${verdict.to}, claim = null, lease_until = null, last_error = ${code},
            begun_at = case when ${verdict.to} = 'pending' then null else begun_at end,
            not_before = ${now}, updated_at = ${now}
          where id = ${job.id}::uuid and claim = ${job.claim} returning *`
        if (after === undefined) return viewOf(yield* find(job.id))
        if (verdict.to === "effective" && verdict.client !== undefined && job.target !== null) {
          yield* known.keep(job.project_id, job.reference, verdict.client, job.target)
        }
        if (verdict.to === "effective" && verdict.disabled === true) yield* known.disabled(job.project_id)
        yield* audit.append({
          action: `provider-job.${action}`,
          actor: `person:${by.personId}`,
          subject: `job:${job.id}`,
          outcome: "done",
          code: code ?? "effective",
          details: { project: job.project_id },
        })
        yield* sql.afterCommit(bells.ring(providerTopic))
        return viewOf(after)
      }, sql.withTransaction)

      const letGo = (job: Claimed) =>
        sql`update provider_jobs set claim = null, lease_until = null where id = ${job.id}::uuid and claim = ${job.claim}`

      const created = Effect.fnUntraced(function* (job: Claimed): Effect.fn.Return<Verdict, ProviderFault> {
        const found = yield* provider.find(job.reference)
        if (found === unfindable) return { to: "ambiguous", code: unfindable }
        return found === null ? { to: "pending", code: "not_done" } : { to: "effective", client: found }
      })

      const changed = Effect.fnUntraced(
        function* (client: KnownClient, target: ClientTarget | null): Effect.fn.Return<Verdict, ProviderFault> {
          const seen = yield* provider.read(client)
          if (seen === null) return { to: "failed", code: "client_is_gone" }
          return target !== null && driftOf(target, seen.observed).length === 0
            ? { to: "effective", client: seen.client }
            : { to: "pending", code: "not_done" }
        },
      )

      const verdict = Effect.fnUntraced(
        function* (job: Claimed): Effect.fn.Return<Verdict, ProviderFault | SqlError.SqlError> {
          const mine = yield* known.of(job.project_id)
          if (job.kind === "client.create") return mine === null ? yield* created(job) : { to: "effective" }
          if (mine === null) return { to: "effective" }
          if (job.kind === "client.update") return yield* changed(mine.client, job.target)
          const seen = yield* provider.read(mine.client)
          return seen === null ? { to: "effective", disabled: true } : { to: "pending", code: "not_done" }
        },
      )

      const asked = <A, E>(job: Claimed, ask: Effect.Effect<A, E | ProviderFault>) =>
        Effect.catchTag(
          ask as Effect.Effect<A, ProviderFault>,
          "ProviderFault",
          () => Effect.andThen(letGo(job), Effect.fail(new OutcomeUnknown({ job_id: job.id }))),
        ) as Effect.Effect<A, Exclude<E, ProviderFault> | OutcomeUnknown | SqlError.SqlError>

      const reconcile = Effect.fn("ReviewedJobs.reconcile")(function* (by: Reviewed) {
        yield* operator(by.personId)
        const job = yield* take(by.jobId, ["ambiguous"])
        // A provider that refuses to tell has told nothing: from here on an operator may decide.
        const found = Effect.catchIf(
          verdict(job),
          (error): error is ProviderFault => isRefusal(error),
          () => Effect.succeed<Verdict>({ to: "ambiguous", code: unfindable }),
        )
        return yield* settle(job, by, "reconcile", yield* asked(job, found))
      })

      const retry = Effect.fn("ReviewedJobs.retry")(function* (by: Reviewed) {
        yield* operator(by.personId)
        const job = yield* find(by.jobId)
        const decided = job.state === "failed" || (job.state === "ambiguous" && job.last_error === unfindable)
        if (!decided || job.claim !== null) {
          return yield* new InvalidState({ state: viewOf(job).state, allowed: ["failed"] })
        }
        const taken = yield* take(by.jobId, ["failed", "ambiguous"])
        yield* sql`update provider_jobs set attempts = 0 where id = ${job.id}::uuid`
        return yield* settle(taken, by, "retry", { to: "pending", code: "retried" })
      })

      const repair: ReviewedJobs["Service"]["repair"] = Effect.fn("ReviewedJobs.repair")(
        function* ({ clientId, managementToken, managementUri, ...by }) {
          yield* operator(by.personId)
          const before = yield* find(by.jobId)
          const decided = before.state === "failed" ||
            (before.state === "ambiguous" && before.last_error === unfindable)
          if (!decided) return yield* new InvalidState({ state: viewOf(before).state, allowed: ["failed"] })
          const job = yield* take(by.jobId, ["failed", "ambiguous"])
          const read = Effect.catchIf(
            provider.read({ clientId, managementToken, managementUri }),
            isRefusal,
            () => Effect.succeed(null),
          )
          const seen = yield* asked(job, read)
          const ends = job.kind === "client.disable"
          if ((seen === null) !== ends) {
            yield* letGo(job)
            const fault = ends ? "Value error, the client is still there" : "Value error, no such client"
            return yield* HTTPValidationError.at(["body", "client_id"], "value_error", fault)
          }
          return yield* settle(
            job,
            by,
            "repair",
            seen === null ? { to: "effective", disabled: true } : { to: "effective", client: seen.client },
          )
        },
      )

      return ReviewedJobs.of({ reconcile, retry, repair })
    }),
  )
}
