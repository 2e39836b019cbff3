/**
 * The status of the work at the provider: a summary for every person, over the projects that the person can see; jobs,
 * and diagnostics of failed and ambiguous ones, for operators (docs/api/identity.md).
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type {
  AllowedAction,
  AmbiguousJob,
  Diagnostics,
  Job,
  OperationsSummary,
} from "../../schemas/identity/Operation.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { drifting, lagging, streaming } from "../lifecycle/Lag.ts"
import { roleRequired, Roles } from "../people/Roles.ts"
import { Bus } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import { readInstallation } from "../platform/database/Installation.ts"
import { unsent } from "../platform/mail/Mails.ts"
import { unpublished } from "../platform/messaging/Outbox/UnorderedRelay.ts"
import { type JobRow, viewOf } from "./ProviderJobs/Rows.ts"
import { unfindable } from "./ReviewedJobs.ts"

const newest = 100
const staleMillis = 30_000
/** Waiting rows are counted up to this number. */
const counted = 10_000

interface WorkerRow {
  readonly worker: string
  readonly instance: string
  readonly last_seen_at: Date
  readonly stopped: boolean
  readonly backlog: number | null
}

interface DriftRow {
  readonly project_id: ProjectId
  readonly client_id: string
  readonly field: string
  readonly expected_digest: string
  readonly observed_digest: string
  readonly first_seen_at: Date
}

const actions = ({ last_error }: JobRow): ReadonlyArray<AllowedAction> =>
  last_error === unfindable ? ["reconcile", "reviewed_retry", "reviewed_repair"] : ["reconcile"]

const ambiguous = (row: JobRow): AmbiguousJob => ({
  ...viewOf(row),
  provider_reference: row.reference,
  target_state: { ...row.target },
  allowed_actions: actions(row),
})

export class Operations extends Context.Service<Operations, {
  /**
   * Counts the jobs that the person can see: an operator sees all, others see the projects that they own and those of
   * institutions where they have a membership that has not ended. `failure_diagnostics_available` is true where the
   * person may also read the diagnostics of a failed job.
   */
  readonly summary: (personId: PersonId) => Effect.Effect<OperationsSummary, SqlError.SqlError>
  /** The newest 100 jobs; RoleRequired unless the person is an operator. */
  readonly jobs: (personId: PersonId) => Effect.Effect<ReadonlyArray<Job>, RoleRequired | SqlError.SqlError>
  readonly diagnostics: (personId: PersonId) => Effect.Effect<Diagnostics, RoleRequired | SqlError.SqlError>
  /**
   * Diagnostics of one project: for its active owner, and for an operator with an active membership in its institution.
   */
  readonly projectDiagnostics: (
    personId: PersonId,
    projectId: ProjectId,
  ) => Effect.Effect<Diagnostics, NotFound | RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/projects/Operations") {
  static readonly layer = Layer.effect(
    Operations,
    Effect.gen(function* () {
      const { sql, wide } = yield* Database
      const bus = yield* Bus
      const roles = yield* Roles

      const mustOperate = Effect.fnUntraced(function* (personId: PersonId) {
        if (!(yield* roles.isOperator(personId, "none"))) return yield* roleRequired("an active operator")
      })

      const summary = Effect.fn("Operations.summary")(function* (personId: PersonId) {
        const operator = yield* roles.isOperator(personId, "none")
        const [row] = yield* sql<{ pending: number; failed: number; told: boolean }>`
          select count(*) filter (where state = 'pending')::int as pending,
            count(*) filter (where state <> 'pending')::int as failed,
            coalesce(bool_or(state <> 'pending' and (${operator} or owned)), false) as told
          from (
            select j.state, exists (
                select from project_owners o
                where o.project_id = j.project_id and o.person_id = ${personId} and o.active and not o.removed
              ) as owned, exists (
                select from projects p join institution_memberships m on m.institution_id = p.institution_id
                where p.id = j.project_id and not p.removed and m.person_id = ${personId} and m.state <> 'ended' and not m.removed
              ) as seen
            from provider_jobs j where j.state <> 'effective'
          ) j where ${operator} or owned or seen`
        const { failed, pending, told } = row!
        return {
          pending,
          failed,
          failure_diagnostics_available: told,
          status: failed > 0 ? "failed" : pending > 0 ? "pending" : "effective",
        } satisfies OperationsSummary
      })

      /** Subscribers on the broker, each of which can read every project. */
      const subscribers = bus.subscribers("LIFECYCLE").pipe(
        Effect.map((found) => found.map((one) => ({ ...one, trust: "inside" as const }))),
        Effect.timeout("2 seconds"),
        Effect.catch(() => Effect.succeed(null)),
      )

      const read = Effect.fnUntraced(function* (of: Statement.Fragment, projectId: ProjectId | null) {
        const now = yield* Clock.currentTimeMillis
        const [jobs, workers, drift, lag, streams, folds, brokers, here] = yield* Effect.all([
          sql<JobRow>`
            select * from provider_jobs t where t.state in ('failed', 'ambiguous') and ${of}
            order by t.id desc limit 500`,
          sql<WorkerRow>`
            select worker, instance, last_seen_at, stopped, case worker
              when 'provider' then (select count(*) from provider_jobs where state = 'pending' and not held)
              when 'relay, unordered' then (
                select count(*) from (${unpublished(sql, counted)}) o)
              when 'due mails' then (select count(*) from (${unsent(sql, counted)}) m)
              when 'jobs' then (select count(*) from jobs where state = 'pending')
              when 'lifecycle signer' then (
                select coalesce(sum(h.position - coalesce(s.position, 0)), 0) from lifecycle_heads h
                left join lifecycle_signed s on s.project_id = h.project_id and s.epoch = h.epoch)
              when 'lifecycle push' then (
                select count(*) from lifecycle_streams t join lifecycle_heads h on h.project_id = t.project_id
                where t.delivery = 'push' and t.status = 'enabled' and (h.epoch, h.position) > (t.epoch, t.position))
              when 'relay, ordered' then (
                select count(*) from (
                  select from outbox where published_at is null and aggregate_id is not null limit 10000) o)
            end::int as backlog
            from worker_sightings order by worker, instance`,
          sql<DriftRow>`select * from client_drift t where ${of} order by t.first_seen_at limit 500`,
          lagging(wide, projectId),
          streaming(wide, projectId),
          drifting(wide, projectId),
          projectId === null ? subscribers : Effect.succeed([]),
          readInstallation(sql),
        ], { concurrency: 3 })
        return {
          as_of: new Date(now).toISOString(),
          installation: {
            epoch: here.epoch,
            state: here.state,
            held_since: here.held_since?.toISOString() ?? null,
            held_reason: here.held_reason,
          },
          failed: jobs.filter(({ state }) => state === "failed").map(viewOf),
          ambiguous: jobs.filter(({ state }) => state === "ambiguous").map(ambiguous),
          workers: workers.map(({ last_seen_at, stopped, ...worker }) => ({
            ...worker,
            last_seen_at: last_seen_at.toISOString(),
            state: stopped
              ? "stopped" as const
              : last_seen_at.getTime() < now - staleMillis
              ? "stale" as const
              : "running" as const,
          })),
          client_drift: drift.map((row) => ({ ...row, first_seen_at: row.first_seen_at.toISOString() })),
          lifecycle_lag: lag,
          lifecycle_streams: streams,
          lifecycle_drift: folds,
          lifecycle_broker_subscribers: brokers,
        } satisfies Diagnostics
      })

      const jobs = Effect.fn("Operations.jobs")(function* (personId: PersonId) {
        yield* mustOperate(personId)
        const rows = yield* sql<JobRow>`
          select * from provider_jobs order by id desc limit ${newest}`
        return rows.map(viewOf)
      })

      const diagnostics = Effect.fn("Operations.diagnostics")(function* (personId: PersonId) {
        yield* mustOperate(personId)
        return yield* read(sql`true`, null)
      })

      const projectDiagnostics = Effect.fn("Operations.projectDiagnostics")(
        function* (personId: PersonId, projectId: ProjectId) {
          const { institution, operator, owner } = yield* roles.toProject(personId, projectId, "none")
          if (!owner && !(operator && institution?.member === true)) {
            return yield* roleRequired(
              "an active owner of the project, or an operator with an effective membership in its institution",
            )
          }
          return yield* read(sql`t.project_id = ${projectId}`, projectId)
        },
      )

      return Operations.of({ summary, jobs, diagnostics, projectDiagnostics })
    }),
  )
}
