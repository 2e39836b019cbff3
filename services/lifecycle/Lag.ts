/**
 * How far a project's consumers are behind its decisions (docs/lifecycle.md): what was delivered, what was
 * acknowledged by which version, and how long each step took. Each of decided, delivered and acknowledged is recorded
 * by itself; none is inferred from another.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Metric } from "effect"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import type { LifecycleDrift, LifecycleLag, LifecycleStream } from "../../schemas/identity/LagReport.ts"
import { followers, progress } from "./Followers.ts"
import { minimumCursorOf } from "./Keys/MinimumCursor.ts"
import { p99Of } from "./LatencyMetrics.ts"

const most = 500
/** The messages at the head over which the time until the signature is computed. */
const sampled = 200

interface LagRow {
  readonly project_id: ProjectId
  readonly consumer_id: string
  readonly head_position: bigint
  readonly delivered_position: bigint
  readonly acknowledged_position: bigint
  readonly acknowledged_at: Date | null
  readonly installed_version: string | null
  readonly to_delivery: ReadonlyArray<number> | null
  readonly to_acknowledgement: ReadonlyArray<number> | null
  readonly waiting_position: bigint | null
  readonly waiting_since: Date | null
  /** The consumer acknowledged a position of this epoch that is not before its minimum cursor. */
  readonly placed: boolean
  readonly signed_p99: number | null
  /** The consumer has to acknowledge. */
  readonly acknowledges: boolean
}

interface StreamRow extends Omit<LifecycleStream, "failing_since" | "lag_events"> {
  readonly lag_events: bigint
  readonly failing_since: Date | null
}

type DriftRow = Omit<LifecycleDrift, "first_seen_at"> & { readonly first_seen_at: Date }

const seconds = (since: Date | null, now: number) => since === null ? null : Math.max(0, now - since.getTime()) / 1_000

const lagOf = (row: LagRow, now: number): LifecycleLag => {
  const [head, acknowledged] = [Number(row.head_position), Number(row.acknowledged_position)]
  const delivered = Number(row.delivered_position)
  return {
    project_id: row.project_id,
    consumer_id: row.consumer_id,
    head_position: head,
    delivered_position: delivered,
    acknowledged_position: acknowledged,
    installed_version: row.installed_version,
    // A service that does not have to acknowledge, for example one with streams only, owes no acknowledgement.
    oldest_unacknowledged_seconds: row.acknowledges ? seconds(row.waiting_since, now) : null,
    decision_to_queue_ms_p99: row.signed_p99,
    queue_to_delivery_ms_p99: p99Of(row.to_delivery ?? []),
    delivery_to_ack_ms_p99: p99Of(row.to_acknowledgement ?? []),
    lag_events: head - (row.acknowledges ? acknowledged : delivered),
    acknowledged_at: row.acknowledged_at?.toISOString() ?? null,
    snapshot_required: row.acknowledges &&
      (!row.placed || head > acknowledged && Number(row.waiting_position) !== acknowledged + 1),
  }
}

/** A page of consumers: at most `limit`, after the consumer that was shown last, null: from the furthest behind. */
export interface LagPage {
  readonly limit: number
  readonly after: Pick<LifecycleLag, "lag_events" | "project_id" | "consumer_id"> | null
}

const furthest: LagPage = { limit: 500, after: null }

/**
 * Consumers with an effective grant, the furthest behind first; of one project, or of all. `wide` is the pool for long
 * statements. A consumer whose lag changes between two pages may come twice, or not at all.
 */
export const lagging = Effect.fn("Lag.consumers")(function* (
  wide: PgClient.PgClient,
  projectId: ProjectId | null,
  { after, limit }: LagPage = furthest,
) {
  const now = yield* Clock.currentTimeMillis
  const later = after === null ? wide`` : wide`where (-p.lag, p.project_id, p.consumer) > (
    ${-after.lag_events}::bigint, ${after.project_id}::text, ${after.consumer_id}::text)`
  const rows = yield* wide<LagRow>`
    with following as materialized (
      ${followers(wide, new Date(now), projectId === null ? wide`true` : wide`g.project_id = ${projectId}`)}
    ), measured as (
      select f.project_id, f.consumer, d.acknowledges, h.epoch, h.position as head_position,
        case when d.delivered_epoch = h.epoch then d.delivered_position else 0 end as delivered_position,
        case when c.acknowledged_epoch = h.epoch then c.acknowledged_position else 0 end as acknowledged_position,
        c.acknowledged_at, c.installed_version, c.to_delivery, c.to_acknowledgement,
        coalesce(c.acknowledged_epoch = h.epoch, false) as placed
      from following f join lifecycle_heads h on h.project_id = f.project_id
      left join lifecycle_consumers c on c.project_id = f.project_id and c.consumer = f.consumer
      cross join lateral (${progress(wide)}) d
      where f.events or f.snapshots or f.acknowledges
    ), placed as (
      select p.* from (
        select m.*, m.head_position - case when m.acknowledges then m.acknowledged_position else m.delivered_position end
          as lag
        from measured m
      ) p ${later}
      order by p.lag desc, p.project_id, p.consumer
      limit ${limit}
    )
    select t.project_id, t.consumer as consumer_id, t.acknowledges, t.head_position, t.delivered_position, t.acknowledged_position,
      t.acknowledged_at, t.installed_version, t.to_delivery, t.to_acknowledgement,
      t.placed and coalesce((t.epoch, t.acknowledged_position) >= (f.floor_epoch, f.floor_position), true) as placed,
      waiting.position as waiting_position, waiting.created_at as waiting_since, signed.p99 as signed_p99
    from placed t
    left join lateral (${minimumCursorOf(wide, wide.literal("t.project_id"), wide.literal("t.consumer"))}) f on true
    left join lateral (
      select e.position, e.created_at from lifecycle_events e
      where e.project_id = t.project_id and e.epoch = t.epoch and e.position > t.acknowledged_position
      order by e.position limit 1
    ) waiting on true
    left join lateral (
      select round(percentile_disc(0.99) within group (order by extract(epoch from m.signed_at - m.decided_at)) * 1000)
        ::float8 as p99
      from (
        select signed_at, decided_at from lifecycle_messages
        where project_id = t.project_id and epoch = t.epoch and decided_at is not null
        order by position desc limit ${sampled}
      ) m
    ) signed on true
    order by t.lag desc, t.project_id, t.consumer`
  return rows.map((row) => lagOf(row, now))
})

/** Streams, failing streams first; of one project, or of all. */
export const streaming = Effect.fn("Lag.streams")(function* (wide: PgClient.PgClient, projectId: ProjectId | null) {
  const rows = yield* wide<StreamRow>`
    select t.id::text as stream_id, t.project_id, t.service_issuer || ' ' || t.service_id as consumer_id, t.delivery,
      t.status, t.status_by, t.attempts, t.failing_since,
      greatest(0, coalesce(h.position, 0) - case when t.epoch = h.epoch then t.position else 0 end) as lag_events
    from lifecycle_streams t left join lifecycle_heads h on h.project_id = t.project_id
    where ${projectId === null ? wide`true` : wide`t.project_id = ${projectId}`}
    order by t.failing_since nulls last, lag_events desc, t.id limit ${most}`
  return rows.map(({ failing_since, lag_events, ...row }): LifecycleStream => ({
    ...row,
    lag_events: Number(lag_events),
    failing_since: failing_since?.toISOString() ?? null,
  }))
})

/** Noted drift, the oldest first; of one project, or of all. */
export const drifting = Effect.fn("Lag.drift")(function* (wide: PgClient.PgClient, projectId: ProjectId | null) {
  const rows = yield* wide<DriftRow>`
    select project_id, key, expected, observed, first_seen_at from lifecycle_drift
    where ${projectId === null ? wide`true` : wide`project_id = ${projectId}`}
    order by first_seen_at, project_id, key limit ${most}`
  return rows.map((row): LifecycleDrift => ({ ...row, first_seen_at: row.first_seen_at.toISOString() }))
})

const gauge = (name: string, description: string) => Metric.gauge(`bailiwick_lifecycle_${name}`, { description })
const gauges = {
  events: gauge("lag_events_max", "Events that the consumer furthest behind has not acknowledged"),
  seconds: gauge("oldest_unacknowledged_seconds", "Age of the oldest event that a consumer has not acknowledged"),
  snapshots: gauge("snapshot_required", "Consumers that cannot go on by events alone, 500 at most"),
  failing: gauge("streams_failing", "Streams whose receiver takes nothing just now, 500 at most"),
}

/**
 * Sets the gauges of lag over all consumers together: a gauge for each consumer would be as many as there are products.
 */
export const gaugeLag = Effect.fn("Lag.gauge")(function* (wide: PgClient.PgClient) {
  const lags = yield* lagging(wide, null)
  const streams = yield* streaming(wide, null)
  const most = (numbers: ReadonlyArray<number>) => numbers.reduce((a, b) => Math.max(a, b), 0)
  yield* Metric.update(gauges.events, most(lags.map(({ lag_events }) => lag_events)))
  yield* Metric.update(gauges.seconds, most(lags.map((lag) => lag.oldest_unacknowledged_seconds ?? 0)))
  yield* Metric.update(gauges.snapshots, lags.filter((lag) => lag.snapshot_required).length)
  yield* Metric.update(gauges.failing, streams.filter(({ failing_since }) => failing_since !== null).length)
})
