/**
 * Writes the state of a session, fenced by its claim: the stream's position, held-up subjects, own messages that are
 * done, and failures. A session whose claim no longer holds changes nothing.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { reported } from "../../lifecycle/DeliveryStatus.ts"
import { countsOf } from "../../lifecycle/LatencyMetrics.ts"
import type { Missed, PushState } from "./PushState.ts"
import type { StreamRecord } from "./StreamRecord.ts"
import { together } from "./RequestBatcher.ts"

/** The fate of the claim: kept for a time, or released, with the stream due again after a time. */
export type Ending = { readonly leaseMillis: number } | { readonly dueInMillis: number }

/** The changes of one stream. */
interface Row {
  readonly id: string
  readonly claim: string
  readonly epoch: number
  readonly project_id: ProjectId
  readonly consumer: string
  /** `position` and `reached` are written; otherwise they stay. */
  readonly moved: boolean
  readonly position: number
  readonly reached: number | null
  readonly attempts: number
  readonly failing_since: string | null
  readonly last_error: string | null
  readonly verified: boolean
  /** The claim is kept until `until`; otherwise it is released, and the stream is due again at `until`. */
  readonly kept: boolean
  readonly until: string
  readonly own: ReadonlyArray<string>
  readonly delivered: number | null
  /** Positions of delivered events, of a stream that leaves something out. */
  readonly given: ReadonlyArray<number>
  readonly took: ReadonlyArray<number>
  readonly missed: ReadonlyArray<Missed>
}

/** How long a settlement waits for others, so that one statement writes them together. */
const lingerMillis = 2

/**
 * The end of the lease, renewed only once half of it is over: an unchanged value spares the row's indexes an update.
 */
const untilOf = ({ leaseUntil }: PushState, ending: Ending, now: number) => {
  if ("dueInMillis" in ending) return now + ending.dueInMillis
  return leaseUntil - now > ending.leaseMillis / 2 ? leaseUntil : now + ending.leaseMillis
}

export const settlements = Effect.gen(function* () {
  const { sql } = yield* Database

  /** Writes rows; returns for each whether its claim held. */
  const write = Effect.fnUntraced(function* (rows: ReadonlyArray<Row>) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const written = yield* sql<{ id: string }>`
      with said as materialized (
        select * from jsonb_to_recordset(${sql.json(rows)}) r(
          id uuid, claim bigint, epoch integer, project_id text, consumer text, moved boolean, position bigint,
          reached bigint, attempts integer, failing_since timestamptz, last_error text, verified boolean, kept boolean,
          until timestamptz, own uuid[], delivered bigint, given bigint[], took integer[], missed jsonb)
      ), moved as (
        update lifecycle_streams t set
          position = case when r.moved then greatest(t.position, r.position) else t.position end,
          reached = case when r.moved then r.reached else t.reached end,
          attempts = r.attempts, failing_since = r.failing_since, last_error = r.last_error,
          verified_at = case when r.verified then ${now} else t.verified_at end,
          claim = case when r.kept then t.claim end, lease_until = case when r.kept then r.until end,
          not_before = case when r.kept then t.not_before else r.until end
        from said r where t.id = r.id and t.claim = r.claim and t.epoch = r.epoch
        returning r.*
      ), told as (
        update lifecycle_stream_messages m set delivered_at = ${now} from moved
        where m.stream_id = moved.id and m.id = any(moved.own)
      ), given as (
        insert into lifecycle_given (project_id, epoch, position, given_at)
        select e.project_id, e.epoch, e.position, ${now}::timestamptz
        from moved cross join lateral unnest(moved.given) g(position)
        join lifecycle_events e on e.project_id = moved.project_id and e.epoch = moved.epoch and e.position = g.position
        where e.kind = any(${[...reported]}::text[]) on conflict do nothing
      ), tried as (
        insert into lifecycle_attempts as a (project_id, epoch, position, stream_id, consumer, attempts, last_attempt_at,
          outcome)
        select e.project_id, e.epoch, e.position, moved.id, moved.consumer, m.attempts, m.at, m.outcome
        from moved cross join lateral jsonb_to_recordset(moved.missed)
          m(position bigint, attempts integer, at timestamptz, outcome text)
        join lifecycle_events e on e.project_id = moved.project_id and e.epoch = moved.epoch and e.position = m.position
        where e.kind = any(${[...reported]}::text[])
        on conflict (project_id, epoch, position, stream_id) do update
        set attempts = a.attempts + excluded.attempts, last_attempt_at = excluded.last_attempt_at,
          outcome = case when a.outcome = 'ambiguous' and excluded.outcome = 'failed' then a.outcome
            else excluded.outcome end
      ), taken as (
        update lifecycle_attempts a set outcome = 'taken' from moved
        where a.stream_id = moved.id and a.epoch = moved.epoch and a.outcome <> 'taken'
          and (a.position = any(moved.given) or a.position <= moved.delivered)
      ), known as (
        insert into lifecycle_consumers as c (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
          to_delivery)
        select distinct on (project_id, consumer) project_id, consumer, epoch, delivered, ${now}::timestamptz, took
        from moved where delivered is not null order by project_id, consumer, epoch desc, delivered desc
        on conflict (project_id, consumer) do update
        set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
          delivered_at = excluded.delivered_at, to_delivery = lifecycle_counted(c.to_delivery, excluded.to_delivery)
        where c.delivered_epoch is null
          or (excluded.delivered_epoch, excluded.delivered_position) > (c.delivered_epoch, c.delivered_position)
      )
      select id::text as id from moved`
    const held = new Set(written.map(({ id }) => id))
    return rows.map(({ id }) => held.has(id))
  })

  const writeTogether = yield* together(write, { most: 200, lingerMillis })

  const writeHeld = Effect.fnUntraced(function* (session: PushState, { epoch }: StreamRecord) {
    const [held, gone] = [[] as Array<object>, [] as Array<string>]
    for (const key of session.changed) {
      const one = session.held.get(key)
      if (one === undefined) gone.push(key)
      else {
        held.push({
          subject_digest: key,
          subject: one.subject,
          epoch,
          position: one.position,
          attempts: one.attempts,
          not_before: new Date(one.notBefore).toISOString(),
          last_error: one.error,
        })
      }
    }
    if (gone.length > 0) {
      yield* sql`
        delete from lifecycle_stream_failing
        where stream_id = ${session.id}::uuid and subject_digest = any(${gone}::text[])`
    }
    if (held.length > 0) {
      yield* sql`
        insert into lifecycle_stream_failing (stream_id, subject_digest, subject, epoch, position, attempts, not_before,
          last_error)
        select ${session.id}::uuid, subject_digest, subject, epoch, position, attempts, not_before, last_error
        from jsonb_to_recordset(${sql.json(held)}) r(subject_digest text, subject jsonb, epoch integer, position bigint,
          attempts integer, not_before timestamptz, last_error text)
        on conflict (stream_id, subject_digest) do update
        set epoch = excluded.epoch, position = excluded.position, attempts = excluded.attempts,
          not_before = excluded.not_before, last_error = excluded.last_error`
    }
  })

  const rowOf = (session: PushState, served: StreamRecord, ending: Ending, now: number): Row => {
    const kept = "leaseMillis" in ending
    const reached = session.reached ?? served.reached ?? served.position
    return {
      id: session.id,
      claim: String(session.claim),
      epoch: served.epoch,
      project_id: served.project_id,
      consumer: served.consumer,
      moved: session.reached !== null || session.changed.size > 0,
      position: session.settledPosition(reached),
      reached: session.held.size === 0 ? null : reached,
      attempts: session.failures,
      failing_since: session.failingSince === null ? null : new Date(session.failingSince).toISOString(),
      last_error: session.error,
      verified: session.verified,
      kept,
      until: new Date(untilOf(session, ending, now)).toISOString(),
      own: session.own,
      delivered: session.delivered,
      given: session.given,
      took: countsOf(session.took),
      missed: [...session.missed.values()],
    }
  }

  /** Settles a session and resets what was settled; returns whether the claim held. */
  return Effect.fnUntraced(function* (session: PushState, served: StreamRecord, ending: Ending) {
    const now = yield* Clock.currentTimeMillis
    const row = rowOf(session, served, ending, now)
    const settled = yield* session.changed.size === 0
      ? writeTogether(row)
      : sql.withTransaction(Effect.gen(function* () {
        const [fenced = false] = yield* write([row])
        if (fenced) yield* writeHeld(session, served)
        return fenced
      }))
    if (row.kept) session.leaseUntil = Date.parse(row.until)
    session.own = []
    session.changed.clear()
    session.delivered = null
    session.given = []
    session.took = []
    session.missed.clear()
    session.verified = false
    session.unsettled = 0
    return settled
  })
})
