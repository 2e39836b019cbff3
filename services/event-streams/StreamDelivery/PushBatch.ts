/**
 * Builds the batch of one push, in order: the stream's own messages that are due, retries of held-up subjects, and new
 * events. A stream that leaves nothing out keeps one order, that of positions; any other stream keeps an order for each
 * subject.
 */
import { Clock, Effect } from "effect"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { canonical } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import type { Travelled } from "../../lifecycle/LatencyMetrics.ts"
import type { OwnKind } from "../Streams/ControlMessages.ts"
import { filtered, filterOf } from "../Streams/StreamSubjects.ts"
import { type HeldUp, orderedBy, type PushState } from "./PushState.ts"
import { type Opened, openingMessages } from "./PrefetchStreams.ts"
import { isDue, type OwnMessage, reader, type RecordedEvent } from "./Reader.ts"
import type { StreamRecord } from "./StreamRecord.ts"
import { twinMessages } from "./TwinMessages.ts"

const pageEvents = 100
const retriesOfSubject = 50
/** The delay until an event is tried whose message was deleted for a stolen key: it is signed again soon. */
const unsignedMillis = 1_000

export interface Item {
  readonly id: string
  readonly message: string
  readonly kind: "event" | OwnKind
  /** The event's position; 0 for the stream's own messages. */
  readonly position: number
  readonly travelled?: Travelled
  /** The event's subject, where the stream keeps an order per subject. */
  readonly order: { readonly key: string; readonly subject: unknown } | null
  /** Of a retry: the position from which its subject is held up after this event; null: held up no more. */
  readonly again?: { readonly heldFrom: number | null }
}

export interface PushBatch {
  readonly items: ReadonlyArray<Item>
  /** The position that the stream reaches once every item is done. */
  readonly upTo: number
  /** More items may be due at once. */
  readonly more: boolean
}

const ownItem = ({ id, kind, message }: OwnMessage): Item => ({ id, kind, message, position: 0, order: null })

/** Merges own messages into the events, each behind the position that it waits for. */
const merged = (
  events: ReadonlyArray<Item>,
  own: ReadonlyArray<OwnMessage>,
  epoch: number,
  from: number,
  upTo: number,
) => {
  const waiting = own.filter((one) => isDue(one, epoch, upTo))
  const items: Array<Item> = []
  let next = 0
  const addOwnUpTo = (position: number) => {
    for (; next < waiting.length && isDue(waiting[next]!, epoch, position); next++) items.push(ownItem(waiting[next]!))
  }
  addOwnUpTo(from)
  for (const event of events) {
    addOwnUpTo(event.position - 1)
    items.push(event)
  }
  addOwnUpTo(upTo)
  return items
}

export const agendas = Effect.gen(function* () {
  const { sql } = yield* Database
  const { choose, messagesAfter, messagesAt, ownOf } = yield* reader
  const twinned = yield* twinMessages

  const whole = Effect.fnUntraced(function* (
    served: StreamRecord,
    session: PushState,
    own: ReadonlyArray<OwnMessage>,
    ready: Opened["messages"],
  ) {
    session.held.clear()
    if (served.reached !== null) {
      // Until now the stream left something out: held-up events come again, with all events after them.
      yield* sql`
        with own as (
          update lifecycle_streams set reached = null where id = ${session.id}::uuid and claim = ${session.claim} returning id
        )
        delete from lifecycle_stream_failing f using own where f.stream_id = own.id`
    }
    const { messages, signed } = ready === null
      ? yield* messagesAfter(served, pageEvents)
      : { messages: ready, signed: served.signed }
    const more = messages.length === (ready === null ? pageEvents : openingMessages)
    const upTo = more ? messages.at(-1)!.position : Math.max(served.position, signed)
    const events = messages.map((recorded): Item => ({ ...recorded, kind: "event", order: null }))
    return { items: merged(events, own, served.epoch, served.position, upTo), upTo, more } satisfies PushBatch
  })

  /** Loads the held-up subjects as they were last settled. */
  const loadHeld = Effect.fnUntraced(function* (session: PushState, served: StreamRecord) {
    const rows = yield* sql<{
      readonly subject_digest: string
      readonly subject: unknown
      readonly position: bigint
      readonly attempts: number
      readonly not_before: Date
      readonly last_error: string | null
    }>`
      select subject_digest, subject, position, attempts, not_before, last_error from lifecycle_stream_failing
      where stream_id = ${served.id}::uuid and epoch = ${served.epoch}`
    session.held.clear()
    for (const row of rows) {
      session.held.set(row.subject_digest, {
        subject: row.subject,
        position: Number(row.position),
        attempts: row.attempts,
        notBefore: row.not_before.getTime(),
        error: row.last_error ?? "",
      })
    }
  })

  /**
   * Retries of one held-up subject, up to the position that the stream has reached; the subject is released where it
   * has none.
   */
  const retried = Effect.fnUntraced(function* (
    session: PushState,
    served: StreamRecord,
    [key, held]: [string, HeldUp],
    now: number,
  ) {
    const reached = served.reached ?? served.position
    const rows = yield* sql<{ position: bigint; kind: LifecycleEventKind; sub_id: Subject }>`
      select e.position, e.kind, e.sub_id from lifecycle_events e
      where e.project_id = ${served.project_id} and e.epoch = ${served.epoch} and e.position >= ${held.position}
        and e.position <= ${reached} and coalesce(e.sub_id -> 'user', e.sub_id) = ${canonical(held.subject)}::jsonb
      order by e.position limit ${retriesOfSubject}`
    const wanted = filterOf(served)
    const positions = rows.filter(({ kind, sub_id: subId }) => wanted({ kind, subId })).map((row) =>
      Number(row.position)
    )
    const { messages: stored, signed } = yield* messagesAt(served, positions)
    const messages = yield* twinned(served, stored)
    const unsigned = positions.find((position) => position > signed)
    const end = unsigned ?? (rows.length < retriesOfSubject ? null : Number(rows.at(-1)!.position) + 1)
    if (messages.length === 0) {
      if (end === null) session.release(key)
      else session.hold(key, { ...held, position: end, notBefore: unsigned === undefined ? 0 : now + unsignedMillis })
    }
    const order = { key, subject: held.subject }
    return messages.map((recorded, i): Item => ({
      ...recorded,
      kind: "event",
      order,
      again: { heldFrom: i < messages.length - 1 ? messages[i + 1]!.position : end },
    }))
  })

  const ordered = (messages: ReadonlyArray<RecordedEvent>, subjects: ReadonlyMap<number, Subject>) =>
    messages.map((recorded): Item => ({
      ...recorded,
      kind: "event",
      order: orderedBy(subjects.get(recorded.position)!),
    }))

  const bySubject = Effect.fnUntraced(
    function* (served: StreamRecord, session: PushState, own: ReadonlyArray<OwnMessage>) {
      yield* loadHeld(session, served)
      const now = yield* Clock.currentTimeMillis
      const from = served.reached ?? served.position
      const due = [...session.held].filter(([, { notBefore }]) => notBefore <= now)
      const again = yield* Effect.forEach(due, (one) => retried(session, served, one, now))
      const stretch = yield* choose(served, from, pageEvents)
      const subjects = new Map(stretch.chosen.map(({ position, subId }) => [position, subId]))
      const { messages, signed } = subjects.size === 0
        ? { messages: [], signed: stretch.upTo }
        : yield* messagesAt(served, [...subjects.keys()])
      const upTo = Math.max(from, Math.min(stretch.upTo, signed))
      const events = ordered(yield* twinned(served, messages), subjects)
      const items = [...again.flat(), ...merged(events, own, served.epoch, from, upTo)]
      return { items, upTo, more: upTo === stretch.upTo && !stretch.atEnd || due.length > 0 } satisfies PushBatch
    },
  )

  /** `opened`: messages that were read together with the stream, if any. */
  return Effect.fnUntraced(function* (served: StreamRecord, session: PushState, opened: Opened | null) {
    const own = opened?.own ?? (served.own_waiting ? yield* ownOf(served.id) : [])
    if (served.status !== "enabled") {
      const items = own.filter(({ after }) => after === null).map(ownItem)
      const stopped: PushBatch = { items, upTo: served.reached ?? served.position, more: false }
      return stopped
    }
    return yield* filtered(served)
      ? bySubject(served, session, own)
      : whole(served, session, own, opened?.messages ?? null)
  })
})
