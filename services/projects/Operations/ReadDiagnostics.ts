/** Reads the diagnostics of all projects or of one: failed and ambiguous jobs, workers, drift and lag. */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import type { AllowedAction, AmbiguousJob, Diagnostics } from "../../../schemas/identity/Operation.ts"
import { drifting, lagging, type LagPage, streaming } from "../../lifecycle/Lag.ts"
import { Bus } from "../../platform/messaging/Bus.ts"
import { Database } from "../../platform/database/Database.ts"
import { readInstallation } from "../../platform/database/Installation.ts"
import { unsent } from "../../platform/mail/Mails.ts"
import { unpublished } from "../../platform/messaging/Outbox/UnorderedRelay.ts"
import { type JobRow, viewOf } from "../ProviderJobs/Rows.ts"
import { unfindable } from "../ReviewedJobs/JobClaims.ts"

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

export const readDiagnostics = Effect.gen(function* () {
  const { sql, wide } = yield* Database
  const bus = yield* Bus

  /** Subscribers on the broker, each of which can read every project. */
  const subscribers = bus.subscribers("LIFECYCLE").pipe(
    Effect.map((found) => found.map((one) => ({ ...one, trust: "inside" as const }))),
    Effect.timeout("2 seconds"),
    Effect.catch(() => Effect.succeed(null)),
  )

  return Effect.fnUntraced(function* (of: Statement.Fragment, projectId: ProjectId | null, page?: LagPage) {
    const now = yield* Clock.currentTimeMillis
    const [jobs, workers, drift, lag, streams, stateDrift, brokers, here] = yield* Effect.all([
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
      lagging(wide, projectId, page),
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
      lifecycle_drift: stateDrift,
      lifecycle_broker_subscribers: brokers,
    } satisfies Diagnostics
  })
})
