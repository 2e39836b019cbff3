/**
 * Settles the messages that a polling receiver acknowledges (RFC 8936, 2.2), in any order, and moves the stream's
 * position over them as far as there is no gap. An id that is settled already, or not known, changes nothing.
 */
import { Clock, Effect } from "effect"
import { isUuid } from "../../../schemas/Wire.ts"
import { Database } from "../../platform/database/Database.ts"
import { reported } from "../../lifecycle/DeliveryStatus.ts"
import { measureDelivered, type Travelled } from "../../lifecycle/LatencyMetrics.ts"
import { eventIdOf } from "../Streams/ScimTwin.ts"
import { filtered } from "../Streams/StreamSubjects.ts"
import { deliveredTo } from "./ConsumerProgress.ts"
import type { StreamRecord } from "./StreamRecord.ts"

export const acknowledged = Effect.gen(function* () {
  const { sql } = yield* Database

  const takeOwn = (streamId: string, ids: ReadonlyArray<string>, now: Date) =>
    sql`
      with taken as (
        update lifecycle_stream_messages m set delivered_at = ${now} from unnest(${[...ids]}::uuid[]) j(id)
        where m.id = j.id and m.stream_id = ${streamId}::uuid and m.delivered_at is null returning m.kind
      )
      update lifecycle_streams set verified_at = ${now}
      where id = ${streamId}::uuid and exists (select from taken where kind = 'verification')`

  /** Settles events beyond the stream's position and moves that over settled events without a gap; returns it. */
  const takeEvents = Effect.fnUntraced(function* (stream: StreamRecord, ids: ReadonlyArray<string>) {
    const [row] = yield* sql<{ position: bigint }>`
      with acked as materialized (
        select distinct m.position from unnest(${[...ids]}::uuid[]) j(id)
        join lifecycle_messages m on m.event_id = j.id
        where m.project_id = ${stream.project_id} and m.epoch = ${stream.epoch} and m.position > ${stream.position}
      ), beyond as (
        select position from acked
        union
        select position from lifecycle_stream_settled
        where stream_id = ${stream.id}::uuid and epoch = ${stream.epoch} and position > ${stream.position}
      ), folded as materialized (
        select coalesce(max(position), ${stream.position}) as position from (
          select position, position - row_number() over (order by position) as island from beyond
        ) b where island = ${stream.position}
      ), kept as (
        insert into lifecycle_stream_settled (stream_id, epoch, position)
        select ${stream.id}::uuid, ${stream.epoch}::int, a.position from acked a, folded f where a.position > f.position
        on conflict do nothing
      ), past as (
        delete from lifecycle_stream_settled d using folded f
        where d.stream_id = ${stream.id}::uuid and (d.epoch, d.position) <= (${stream.epoch}, f.position)
      )
      update lifecycle_streams t set position = f.position from folded f
      where t.id = ${stream.id}::uuid and f.position >= t.position returning t.position`
    return row === undefined ? stream.position : Number(row.position)
  })

  /** Records that the receiver has these events: the position of a stream that leaves something out does not say so. */
  const given = (stream: StreamRecord, ids: ReadonlyArray<string>, now: Date) =>
    sql`
      with taken as (
        update lifecycle_attempts a set outcome = 'taken' from lifecycle_events e
        where a.stream_id = ${stream.id}::uuid and a.outcome <> 'taken' and e.id = any(${[...ids]}::uuid[])
          and (a.project_id, a.epoch, a.position) = (e.project_id, e.epoch, e.position)
      )
      insert into lifecycle_given (project_id, epoch, position, given_at)
      select project_id, epoch, position, ${now}::timestamptz from lifecycle_events
      where id = any(${[...ids]}::uuid[]) and project_id = ${stream.project_id} and kind = any(${[...reported]}::text[])
      on conflict do nothing`

  /** Moves the position over events that are settled, or that the stream does not carry. */
  const passTo = Effect.fnUntraced(function* (stream: StreamRecord, position: number) {
    yield* sql`
      update lifecycle_streams set position = ${position}
      where id = ${stream.id}::uuid and epoch = ${stream.epoch} and position < ${position}`
    yield* sql`
      delete from lifecycle_stream_settled
      where stream_id = ${stream.id}::uuid and (epoch, position) <= (${stream.epoch}, ${position})`
  }, sql.withTransaction)

  /** Settles the messages with these ids, in one transaction. */
  const settle = Effect.fn("StreamDelivery.settle")(function* (stream: StreamRecord, jtis: ReadonlyArray<string>) {
    // An event's twin settles the event.
    const ids = [...new Set(jtis.filter(isUuid).map(eventIdOf))]
    if (ids.length === 0) return
    const now = new Date(yield* Clock.currentTimeMillis)
    // A concurrent acknowledgement waits for this lock, and then reads what this one wrote.
    const [at] = yield* sql<{ epoch: number; position: bigint }>`
      select epoch, position from lifecycle_streams where id = ${stream.id}::uuid for update`
    if (at === undefined || at.epoch !== stream.epoch) return
    yield* takeOwn(stream.id, ids, now)
    const from = Number(at.position)
    const taken = yield* sql<Travelled>`
      select m.event_id::text as jti, m.decided_at, m.signed_at, m.traceparent from unnest(${ids}::uuid[]) j(id)
      join lifecycle_messages m on m.event_id = j.id
      where m.project_id = ${stream.project_id} and m.epoch = ${stream.epoch} and m.position > ${from}`
    yield* sql.afterCommit(measureDelivered("poll", taken, now.getTime()))
    const to = yield* takeEvents({ ...stream, position: from }, ids)
    if (filtered(stream)) yield* given(stream, taken.map(({ jti }) => jti), now)
    else if (to > from) yield* deliveredTo(sql, stream, to, now, taken)
  }, sql.withTransaction)

  return { passTo, settle }
})
