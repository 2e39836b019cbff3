/**
 * Reads the next messages of a stream, from its position on: signed events that are for the stream and not settled, and
 * its own messages. Many events in a row that are not for the stream are skipped in bounded steps.
 */
import { Effect } from "effect"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { Database } from "../../platform/database/Database.ts"
import type { Travelled } from "../../lifecycle/LatencyMetrics.ts"
import type { OwnKind } from "../Streams/ControlMessages.ts"
import { filterOf } from "../Streams/StreamSubjects.ts"
import type { StreamRecord } from "./StreamRecord.ts"

/** Events that one step reads. */
const stepEvents = 500
/** Steps of one page, so that no request and no claim is held for long. */
const stepsAtOnce = 8
/** Own messages of one page. */
const ownAtOnce = 100

export interface OwnMessage {
  readonly id: string
  readonly kind: OwnKind
  readonly message: string
  /** The message waits until the stream has reached this position; null: it goes before everything else. */
  readonly after: { readonly epoch: number; readonly position: number } | null
}

/** An event that is for the stream. */
export interface Chosen {
  readonly position: number
  readonly subId: Subject
}

export interface Stretch {
  readonly chosen: ReadonlyArray<Chosen>
  /** Every event up to here is among the chosen, settled, or not for the stream. */
  readonly upTo: number
  /** Every event up to here is settled or not for the stream. */
  readonly passed: number
  /** There is no signed event beyond `upTo`. */
  readonly atEnd: boolean
}

export interface RecordedEvent {
  readonly position: number
  readonly id: string
  readonly message: string
  readonly travelled: Travelled
}

/**
 * Messages, and the position up to which the history was signed when they were read. A message that is missing up to
 * there is no longer kept; beyond it messages were deleted because their key was stolen, and are signed again
 * (Keys/Moving).
 */
export interface Signed {
  readonly messages: ReadonlyArray<RecordedEvent>
  readonly signed: number
}

interface RecordedRow extends Omit<Travelled, "jti"> {
  readonly position: bigint
  readonly id: string
  readonly message: string
}

type SignedRow = { readonly signed: bigint } & (RecordedRow | { readonly position: null })

interface EventRow {
  readonly position: bigint
  readonly kind: LifecycleEventKind
  readonly sub_id: Subject
  readonly settled: boolean
}

const recordedOf = ({ id, message, position, ...times }: RecordedRow): RecordedEvent => ({
  id,
  message,
  position: Number(position),
  travelled: { jti: id, ...times },
})

/** Whether the stream has reached the position that an own message waits for. */
export const isDue = ({ after }: OwnMessage, epoch: number, position: number): boolean =>
  after === null || after.epoch < epoch || after.epoch === epoch && after.position <= position

export const reader = Effect.gen(function* () {
  const { sql } = yield* Database

  /** Messages about the stream itself that were not delivered yet, in the order of their delivery. */
  const ownOf = (streamId: string) =>
    Effect.map(
      sql<Omit<OwnMessage, "after"> & { readonly after_epoch: number | null; readonly after_position: bigint | null }>`
        select id::text as id, kind, message, after_epoch, after_position from lifecycle_stream_messages
        where stream_id = ${streamId}::uuid and delivered_at is null
        order by after_epoch nulls first, after_position nulls first, created_at, id limit ${ownAtOnce}`,
      (rows) =>
        rows.map(({ after_epoch: epoch, after_position: position, ...own }): OwnMessage => ({
          ...own,
          after: epoch === null || position === null ? null : { epoch, position: Number(position) },
        })),
    )

  const eventsAfter = ({ epoch, id, project_id, signed }: StreamRecord, after: number) =>
    sql<EventRow>`
      select e.position, e.kind, e.sub_id, x.position is not null as settled from lifecycle_events e
      left join lifecycle_stream_settled x
        on x.stream_id = ${id}::uuid and x.epoch = e.epoch and x.position = e.position
      where e.project_id = ${project_id} and e.epoch = ${epoch} and e.position > ${after} and e.position <= ${signed}
      order by e.position limit ${stepEvents}`

  /** At most `most` events after a position that are for a stream that leaves something out. */
  const choose = Effect.fnUntraced(function* (served: StreamRecord, after: number, most: number) {
    const wanted = filterOf(served)
    const chosen: Array<Chosen> = []
    let upTo = after
    for (let step = 0; step < stepsAtOnce && chosen.length < most; step++) {
      const rows = yield* eventsAfter(served, upTo)
      for (const { kind, position, settled, sub_id: subId } of rows) {
        if (chosen.length === most) break
        upTo = Number(position)
        if (!settled && wanted({ kind, subId })) chosen.push({ position: upTo, subId })
      }
      if (rows.length < stepEvents && chosen.length < most) upTo = Math.max(upTo, served.signed)
      if (upTo >= served.signed) break
    }
    const passed = chosen.length === 0 ? upTo : chosen[0]!.position - 1
    return { chosen, upTo, passed, atEnd: upTo >= served.signed } satisfies Stretch
  })

  const signedOf = (rows: ReadonlyArray<SignedRow>): Signed => ({
    messages: rows.flatMap((row) => row.position === null ? [] : [recordedOf(row)]),
    signed: Number(rows[0]?.signed ?? 0),
  })

  /** The messages at these positions, ascending. */
  const messagesAt = ({ epoch, project_id }: StreamRecord, positions: ReadonlyArray<number>) =>
    Effect.map(
      sql<SignedRow>`
        select s.position as signed, m.* from lifecycle_signed s
        left join lateral (
          select m.position, m.event_id::text as id, m.message, m.decided_at, m.signed_at, m.traceparent
          from unnest(${`{${positions.join(",")}}`}::bigint[]) p(position)
          join lifecycle_messages m
            on m.project_id = s.project_id and m.epoch = s.epoch and m.position = p.position
          where p.position <= s.position
        ) m on true
        where s.project_id = ${project_id} and s.epoch = ${epoch} order by m.position`,
      signedOf,
    )

  /** At most `most` messages after the position of a stream that leaves nothing out. */
  const messagesAfter = ({ epoch, id, position, project_id }: StreamRecord, most: number) =>
    Effect.map(
      sql<SignedRow>`
        select s.position as signed, m.* from lifecycle_signed s
        left join lateral (
          select m.position, m.event_id::text as id, m.message, m.decided_at, m.signed_at, m.traceparent
          from lifecycle_messages m
          where m.project_id = s.project_id and m.epoch = s.epoch and m.position > ${position}
            and m.position <= s.position and not exists (
              select from lifecycle_stream_settled x
              where x.stream_id = ${id}::uuid and x.epoch = m.epoch and x.position = m.position)
          order by m.position limit ${most}
        ) m on true
        where s.project_id = ${project_id} and s.epoch = ${epoch} order by m.position`,
      signedOf,
    )

  return { choose, messagesAfter, messagesAt, ownOf }
})
