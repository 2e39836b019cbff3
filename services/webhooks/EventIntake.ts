/**
 * Email events as they arrive: bounded, decoded, and either accepted, kept waiting for their account, or set aside with
 * the reason. One bad event never stops the others: what PostgreSQL refuses is halved down to the one that it refuses.
 */
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type EventType, MailEvent } from "../../schemas/mail/MailEvent.ts"
import { fieldsAtFault, parse } from "../platform/BoundedJson.ts"
import { Database } from "../platform/Database.ts"
import { type Reject, Rejects } from "../platform/Rejects.ts"
import { isDataFault } from "../platform/SqlFaults.ts"
import { type Accepted, Deliveries } from "./Deliveries.ts"

/** A message of the stream EVENTS. */
export interface EventMessage {
  readonly subject: string
  readonly seq: number
  readonly data: Uint8Array
}

export const eventSubjects = "intake.v1.mail-events.*"
const subjectOf = (event: EventType): string => `intake.v1.mail-events.${event.slice("email.".length)}`

/** How long an event waits for an account that is not known yet. */
const patienceMillis = 7 * 24 * 60 * 60_000
const batch = 500

const decodeEvent = Schema.decodeUnknownResult(MailEvent, { errors: "all", onExcessProperty: "ignore" })
type Fault = { readonly reason: string; readonly detail: string }

/** The same moment in UTC with milliseconds, or null: Date.parse takes a 30th of February for a day in March. */
const inUtc = (text: string): string | null => {
  const day = text.slice(0, 10)
  const millis = Date.parse(text)
  if (Number.isNaN(millis) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)) return null
  const written = new Date(millis).toISOString()
  return written.length === "0000-00-00T00:00:00.000Z".length ? written : null
}

/** The event of a message, and its webhook body exactly as every attempt will send it. */
export const read = ({ subject, data }: Pick<EventMessage, "subject" | "data">): Result.Result<Accepted, Fault> =>
  Result.gen(function* () {
    const json = yield* parse(data)
    const event = yield* Result.mapError(
      decodeEvent(json),
      (error): Fault => ({ reason: "invalid_event", detail: fieldsAtFault(error, "the message") }),
    )
    if (subjectOf(event.event) !== subject) {
      return yield* Result.fail<Fault>({
        reason: "wrong_subject",
        detail: `the event belongs on ${subjectOf(event.event)}`,
      })
    }
    const timestamp = inUtc(event.timestamp)
    if (timestamp === null) {
      return yield* Result.fail<Fault>({ reason: "invalid_event", detail: "at fault: timestamp" })
    }
    return {
      sourceId: event.id,
      accountId: event.account_id.toLowerCase(),
      event: event.event,
      body: JSON.stringify({
        event: event.event,
        email_id: event.email_id,
        recipient: event.recipient,
        timestamp,
        metadata: event.metadata,
      }),
    }
  })

const rejectOf = ({ subject, seq, data }: EventMessage, { reason, detail }: Fault): Reject => ({
  stream: "EVENTS",
  seq,
  subject,
  reason,
  detail,
  payload: data,
})

export class EventIntake extends Context.Service<EventIntake, {
  /** Takes messages in; when it succeeds each of them is in PostgreSQL, as deliveries or set aside. */
  readonly take: (messages: ReadonlyArray<EventMessage>) => Effect.Effect<void, SqlError.SqlError>
  /** Takes in what waited for accounts that are known now; gives whether there may be more. */
  readonly resume: Effect.Effect<boolean, SqlError.SqlError>
  /** Gives up on what waited for seven days. */
  readonly expire: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/webhooks/EventIntake") {
  static readonly layer = Layer.effect(
    EventIntake,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const deliveries = yield* Deliveries
      const rejects = yield* Rejects

      interface Read {
        readonly message: EventMessage
        readonly event: Accepted
        /** The row in which it waited for its account. */
        readonly waited?: string
      }

      const refuse = ({ message, waited }: Read, error: SqlError.SqlError) =>
        waited === undefined
          ? rejects.add([rejectOf(message, { reason: "refused", detail: error.reason._tag })])
          : sql`update intake_rejects set state = 'rejected', reason = 'refused', detail = ${error.reason._tag},
              expires_at = null where id = ${waited}::uuid`

      const store = (items: ReadonlyArray<Read>): Effect.Effect<void, SqlError.SqlError> =>
        items.length === 0 ? Effect.void : deliveries.accept(items.map((item) => item.event)).pipe(
          Effect.flatMap(Effect.fnUntraced(function* ({ unknown }) {
            if (unknown.length === 0) return
            const until = new Date((yield* Clock.currentTimeMillis) + patienceMillis)
            yield* rejects.add(unknown.map((i) => {
              const { event: { accountId }, message } = items[i]!
              const fault = { reason: "unknown_account", detail: "waits for its account" }
              return { ...rejectOf(message, fault), waiting: { accountId, until } }
            }))
          })),
          Effect.catchTag("SqlError", (error) => {
            if (!isDataFault(error)) return Effect.fail(error)
            const half = items.length >> 1
            return half === 0
              ? Effect.asVoid(refuse(items[0]!, error))
              : Effect.andThen(store(items.slice(0, half)), store(items.slice(half)))
          }),
        )

      const take = Effect.fn("EventIntake.take")(function* (messages: ReadonlyArray<EventMessage>) {
        const good: Array<Read> = []
        const bad: Array<Reject> = []
        for (const message of messages) {
          const event = read(message)
          if (Result.isSuccess(event)) good.push({ message, event: event.success })
          else bad.push(rejectOf(message, event.failure))
        }
        yield* rejects.add(bad)
        yield* store(good)
      })

      // Killed between the two statements, it begins again, and the events are known as seen.
      const resume = Effect.gen(function* () {
        const rows = yield* sql<{ id: string; subject: string; stream_seq: bigint; payload: Uint8Array }>`
          select r.id, r.subject, r.stream_seq, r.payload from intake_rejects r
          where r.state = 'waiting' and r.subject like 'intake.v1.mail-events.%' and exists (
            select from accounts a where a.id = r.account_id::uuid and not a.removed)
          order by r.id limit ${batch}`
        if (rows.length === 0) return false
        yield* store(rows.flatMap(({ id, payload, stream_seq, subject }) => {
          const message = { subject, seq: Number(stream_seq), data: payload }
          const event = read(message)
          return Result.isSuccess(event) ? [{ message, event: event.success, waited: id }] : []
        }))
        yield* sql`update intake_rejects set state = 'resolved', expires_at = null
          where id = any(${rows.map((row) => row.id)}::uuid[]) and state = 'waiting'`
        return rows.length === batch
      })

      const expire = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.asVoid(sql`
          update intake_rejects set state = 'rejected', expires_at = null
          where state = 'waiting' and subject like 'intake.v1.mail-events.%' and expires_at <= ${new Date(now)}`))

      return EventIntake.of({ take, resume, expire })
    }),
  )
}
