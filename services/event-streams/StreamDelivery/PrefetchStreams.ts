/**
 * Reads claimed streams, all in one statement: the stream's row, its own messages, and, for a stream that leaves
 * nothing out, its next messages. Most streams have few messages at a time and need no other read.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import type { OwnKind } from "../Streams/ControlMessages.ts"
import type { OwnMessage, RecordedEvent } from "./Reader.ts"
import { servedOf, type ServedRow, servedStreams, type StreamRecord } from "./StreamRecord.ts"

const ownAtOnce = 100
/** Messages of one stream that are read so: a claim of many streams holds all of them in memory. */
export const openingMessages = 20

export interface Opened {
  readonly served: StreamRecord
  /** When this was read; milliseconds since 1970. */
  readonly at: number
  readonly own: ReadonlyArray<OwnMessage>
  /** Null for a stream that leaves something out. Where there are `openingMessages`, there may be more. */
  readonly messages: ReadonlyArray<RecordedEvent> | null
}

/** A stream and the claim that it is held by. */
export interface Held {
  readonly id: string
  readonly claim: bigint
}

/** SQL of whether the stream `t` has something to push, asked of the rows themselves. */
export const somethingFor = (sql: PgClient.PgClient, now: Date) =>
  sql`(
    exists (
      select from lifecycle_stream_messages m
      where m.stream_id = t.id and m.delivered_at is null and (m.after_epoch is null or t.status = 'enabled'
        and (m.after_epoch, m.after_position) <= (t.epoch, coalesce(t.reached, t.position))))
    or t.status = 'enabled' and (
      exists (
        select from lifecycle_signed n where n.project_id = t.project_id
          and (n.epoch, n.position) > (t.epoch, coalesce(t.reached, t.position)))
      or exists (
        select from lifecycle_stream_failing f
        where f.stream_id = t.id and f.epoch = t.epoch and f.not_before <= ${now})))`

interface OwnJson {
  readonly id: string
  readonly kind: OwnKind
  readonly message: string
  readonly after_epoch: number | null
  readonly after_position: number | null
}

interface RecordedJson {
  readonly id: string
  readonly position: number
  readonly message: string
  readonly decided_at: string | null
  readonly signed_at: string
  readonly traceparent: string | null
}

const ownOf = ({ after_epoch: epoch, after_position: position, ...own }: OwnJson): OwnMessage => ({
  ...own,
  after: epoch === null || position === null ? null : { epoch, position },
})

const recordedOf = ({ decided_at, id, message, position, signed_at, traceparent }: RecordedJson): RecordedEvent => ({
  id,
  message,
  position,
  travelled: {
    jti: id,
    decided_at: decided_at === null ? null : new Date(decided_at),
    signed_at: new Date(signed_at),
    traceparent,
  },
})

export const openings = Effect.gen(function* () {
  const { reads } = yield* Database
  const { columns, joins } = yield* servedStreams
  const sqlTrue = reads`true`

  /**
   * Streams by id, without those whose claim no longer holds and, with `ifSomething`, without those that have nothing.
   */
  return Effect.fnUntraced(function* (held: ReadonlyArray<Held>, ifSomething: boolean) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* reads<
      ServedRow & { readonly own: ReadonlyArray<OwnJson> | null; readonly messages: ReadonlyArray<RecordedJson> | null }
    >`
      select ${columns(now)}, (
        select json_agg(json_build_object('id', o.id, 'kind', o.kind, 'message', o.message,
          'after_epoch', o.after_epoch, 'after_position', o.after_position))
        from (
          select m.* from lifecycle_stream_messages m where m.stream_id = t.id and m.delivered_at is null
          order by m.after_epoch nulls first, m.after_position nulls first, m.created_at, m.id limit ${ownAtOnce}
        ) o
      ) as own, case when t.status = 'enabled' and t.reached is null and t.events_requested is null and not exists (
        select from lifecycle_stream_subjects x where x.stream_id = t.id and not x.included
      ) then coalesce((
        select json_agg(json_build_object('id', n.event_id, 'position', n.position, 'message', n.message,
          'decided_at', n.decided_at, 'signed_at', n.signed_at, 'traceparent', n.traceparent))
        from (
          select m.* from lifecycle_messages m
          where m.project_id = t.project_id and m.epoch = t.epoch and m.position > t.position
            and m.position <= s.position and not exists (
              select from lifecycle_stream_settled x
              where x.stream_id = t.id and x.epoch = m.epoch and x.position = m.position)
          order by m.position limit ${openingMessages}
        ) n
      ), '[]') end as messages
      from unnest(${held.map(({ id }) => id)}::uuid[], ${held.map(({ claim }) => String(claim))}::bigint[]) i(id, claim)
      join lifecycle_streams t on t.id = i.id and t.claim = i.claim ${joins}
      where ${ifSomething ? somethingFor(reads, now) : sqlTrue}`
    return new Map(rows.map(({ messages, own, ...row }): [string, Opened] => [row.id, {
      served: servedOf(row),
      at: now.getTime(),
      own: own?.map(ownOf) ?? [],
      messages: messages?.map(recordedOf) ?? null,
    }]))
  })
})
