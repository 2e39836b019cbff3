/**
 * Publishes ordered rows: seq n+1 of an aggregate leaves only after n's ack. The rows are in sixteen partitions (`lane`) by hash,
 * each with one leased owner and a fence that rises with every change of owner; nothing is settled under an old fence.
 * An owner that was frozen past its lease may still publish one message late: its `Bailiwick-Seq` lets consumers drop
 * it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Metric, Result } from "effect"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import type { Bus, BusOutcome } from "../Bus.ts"
import { backoffMillis } from "../../database/Leases.ts"
import { shownWith } from "../../observability/ShownMetrics.ts"
import { within } from "../../observability/Traces.ts"
import type { OutboxRecord } from "./Row.ts"
import { patienceMillis, publicationOf } from "./Row.ts"

const leaseMillis = 15_000
/** The least that must be left of the lease when a publication begins, which takes at most 5 s. */
const marginMillis = 6_000
const aggregatesPerTurn = 200
const rowsPerAggregate = 50

export interface OwnedPartition {
  readonly lane: number
  readonly fence: bigint
  readonly leaseUntilMillis: number
}

const partitionCount = 16

/** Whether to call `leasePartitions`: while there may be free partitions, and when a third of the lease is over. */
export const needsPartitions = (owned: ReadonlyArray<OwnedPartition>, now: number): boolean =>
  owned.length < partitionCount || owned.some((partition) => partition.leaseUntilMillis - now < leaseMillis * 2 / 3)

/** Renews the owner's leases and takes free partitions; returns all partitions that it owns now. */
export const leasePartitions = Effect.fnUntraced(function* (sql: PgClient.PgClient, owner: string) {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* sql<{ lane: number; fence: bigint }>`
    with mine as materialized (
      select lane from outbox_lanes
      where owner = ${owner}::uuid or owner is null or lease_until < ${new Date(now)}
      order by lane for update skip locked
    )
    update outbox_lanes l
    set owner = ${owner}::uuid, lease_until = ${new Date(now + leaseMillis)},
      fence = l.fence + case when l.owner = ${owner}::uuid then 0 else 1 end
    from mine where l.lane = mine.lane
    returning l.lane, l.fence`
  return rows.map(({ lane, fence }): OwnedPartition => ({ lane, fence, leaseUntilMillis: now + leaseMillis }))
})

/** Releases the owner's partitions, so that another process can take them at once. */
export const releasePartitions = (sql: PgClient.PgClient, owner: string) =>
  sql`update outbox_lanes set owner = null, lease_until = null where owner = ${owner}::uuid`

/** The first rows of each aggregate whose oldest row is due. A loose index scan: a failing aggregate hides no other. */
const dueRows = (sql: PgClient.PgClient, lanes: ReadonlyArray<number>, now: Date) =>
  sql<OutboxRecord>`
    with recursive heads as (
      select h.* from unnest(${lanes}::int[]) held(lane) cross join lateral (
        select o.lane, o.aggregate_id, o.not_before, o.stream from outbox o
        where o.lane = held.lane::smallint and o.published_at is null and o.aggregate_id is not null
        order by o.aggregate_id, o.seq, o.id limit 1
      ) h
      union all
      select n.* from heads h cross join lateral (
        select o.lane, o.aggregate_id, o.not_before, o.stream from outbox o
        where o.lane = h.lane and o.aggregate_id > h.aggregate_id and o.published_at is null and o.aggregate_id is not null
        order by o.aggregate_id, o.seq, o.id limit 1
      ) n
    ), due as (
      select h.lane, h.aggregate_id from heads h
      where h.not_before <= ${now}
        and not exists (select from relay_streams r where r.stream = h.stream and not r.swept)
      limit ${aggregatesPerTurn}
    )
    select o.* from due cross join lateral (
      select id, stream, subject, payload, headers, msg_id, aggregate_id, seq, lane, attempts, created_at from outbox o
      where o.lane = due.lane and o.aggregate_id = due.aggregate_id and o.published_at is null
      order by o.seq, o.id limit ${rowsPerAggregate}
    ) o
    order by o.lane, o.aggregate_id, o.seq, o.id`

const published = Metric.histogram("bailiwick_outbox_published_seconds", {
  description: "From a row of an ordered stream to the broker's acknowledgement, by stream",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
})

const byStream = new Map<StreamName, Metric.Histogram<number>>()

/** Shows the histogram of the ordered streams in a process that publishes them. */
export const publishedMetrics = shownWith(published, "stream", ["LIFECYCLE", "TRANSFERS"] satisfies Array<StreamName>)

const measure = (stream: StreamName, millis: number) => {
  const metric = byStream.get(stream) ?? Metric.withAttributes(published, { stream })
  byStream.set(stream, metric)
  return Metric.update(metric, Math.max(0, millis) / 1_000)
}

interface Sent {
  readonly published: Array<{ readonly id: string; readonly at: number }>
  readonly failed: Array<{ readonly id: string; readonly afterMillis: number; readonly error: string }>
}

const publishAggregate = Effect.fnUntraced(
  function* (
    publish: (row: OutboxRecord) => Effect.Effect<ReadonlyArray<BusOutcome>>,
    rows: ReadonlyArray<OutboxRecord>,
    leaseUntil: () => number,
    sent: Sent,
  ) {
    for (const row of rows) {
      const at = yield* Clock.currentTimeMillis
      if (at > leaseUntil() - marginMillis) return
      const [outcome] = yield* publish(row)
      if (Result.isFailure(outcome!)) {
        const { failure } = outcome
        const afterMillis = Math.round(backoffMillis(row.attempts + 1, patienceMillis(failure)))
        return void sent.failed.push({ id: row.id, afterMillis, error: failure.message.replaceAll("\0", "") })
      }
      sent.published.push({ id: row.id, at })
      yield* measure(row.stream, (yield* Clock.currentTimeMillis) - row.created_at.getTime())
    }
  },
)

const settle = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, owner: string, owned: ReadonlyArray<OwnedPartition>, sent: Sent) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const fenced = sql`exists (
    select from outbox_lanes l
    join unnest(${owned.map((p) => p.lane)}::int[], ${owned.map((p) => p.fence)}::bigint[]) f(lane, fence)
      on l.lane = f.lane::smallint and l.fence = f.fence
    where l.lane = o.lane and l.owner = ${owner}::uuid and l.lease_until > ${now})`
    if (sent.published.length > 0) {
      yield* sql`
      update outbox o set published_at = p.at, last_error = null
      from unnest(${sent.published.map((p) => p.id)}::uuid[], ${
        sent.published.map((p) => new Date(p.at))
      }::timestamptz[])
        p(id, at)
      where o.id = p.id and o.published_at is null and ${fenced}`
    }
    if (sent.failed.length > 0) {
      yield* sql`
      update outbox o set attempts = o.attempts + 1, last_error = left(p.error, 500),
        not_before = ${now}::timestamptz + p.after * interval '1 millisecond'
      from unnest(${sent.failed.map((f) => f.id)}::uuid[], ${sent.failed.map((f) => f.afterMillis)}::int[],
        ${sent.failed.map((f) => f.error)}::text[]) p(id, after, error)
      where o.id = p.id and o.published_at is null and ${fenced}`
    }
  },
)

/** Publishes due rows of the owned partitions, aggregates in parallel; returns whether rows were left for the next turn. */
export const publishOrdered = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  bus: Bus["Service"],
  owner: string,
  current: () => ReadonlyArray<OwnedPartition>,
  epoch: number,
) {
  const owned = current()
  if (owned.length === 0) return false
  const rows = yield* dueRows(sql, owned.map((p) => p.lane), new Date(yield* Clock.currentTimeMillis))
  if (rows.length === 0) return false
  const leaseUntil = (lane: number) => {
    const mine = owned.find((p) => p.lane === lane)!
    return current().find((p) => p.lane === lane && p.fence === mine.fence)?.leaseUntilMillis ?? 0
  }
  const publish = (row: OutboxRecord) =>
    bus.publishAll([publicationOf(row)], epoch).pipe(
      within(`${row.stream.toLowerCase()}.publish`, row.headers?.["traceparent"] ?? null, {
        "messaging.message.id": row.id,
      }),
    )
  const sent: Sent = { published: [], failed: [] }
  const groups = [...Map.groupBy(rows, (row) => row.aggregate_id).values()]
  yield* Effect.forEach(groups, (group) => publishAggregate(publish, group, () => leaseUntil(group[0]!.lane!), sent), {
    concurrency: 64,
    discard: true,
  })
  yield* settle(sql, owner, owned, sent)
  return sent.published.length > 0 &&
    (groups.length === aggregatesPerTurn || groups.some((group) => group.length === rowsPerAggregate))
})
