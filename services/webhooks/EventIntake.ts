/** Email events as they arrive, up to their deliveries (the manner of it stands in services/accounts/AccountIntake.ts). */
import { Context, Effect, Layer, Result, Schema } from "effect"
import { type EventType, MailEvent } from "../../schemas/mail/MailEvent.ts"
import { type AccountIntake, accountIntake, type Incoming, type IntakeFault } from "../accounts/AccountIntake.ts"
import { fieldsAtFault, parse } from "../platform/BoundedJson.ts"
import { type Accepted, Deliveries } from "./Deliveries.ts"

export const eventSubjects = "intake.v1.mail-events.*"
const subjectOf = (event: EventType): string => `intake.v1.mail-events.${event.slice("email.".length)}`

const decodeEvent = Schema.decodeUnknownResult(MailEvent, { errors: "all", onExcessProperty: "ignore" })

/** The same moment in UTC with milliseconds, or null: Date.parse takes a 30th of February for a day in March. */
const inUtc = (text: string): string | null => {
  const day = text.slice(0, 10)
  const millis = Date.parse(text)
  if (Number.isNaN(millis) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)) return null
  const written = new Date(millis).toISOString()
  return written.length === "0000-00-00T00:00:00.000Z".length ? written : null
}

/** The event of a message, and its webhook body exactly as every attempt will send it. */
export const read = ({ subject, data }: Pick<Incoming, "subject" | "data">): Result.Result<Accepted, IntakeFault> =>
  Result.gen(function* () {
    const json = yield* parse(data)
    const event = yield* Result.mapError(
      decodeEvent(json),
      (error): IntakeFault => ({ reason: "invalid_event", detail: fieldsAtFault(error, "the message") }),
    )
    if (subjectOf(event.event) !== subject) {
      return yield* Result.fail<IntakeFault>({
        reason: "wrong_subject",
        detail: `the event belongs on ${subjectOf(event.event)}`,
      })
    }
    const timestamp = inUtc(event.timestamp)
    if (timestamp === null) {
      return yield* Result.fail<IntakeFault>({ reason: "invalid_event", detail: "at fault: timestamp" })
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

export class EventIntake extends Context.Service<EventIntake, AccountIntake>()(
  "bailiwick/services/webhooks/EventIntake",
) {
  static readonly layer = Layer.effect(
    EventIntake,
    Effect.gen(function* () {
      const deliveries = yield* Deliveries
      return EventIntake.of(
        yield* accountIntake({
          subjects: "intake.v1.mail-events.%",
          read,
          accept: (events) => Effect.map(deliveries.accept(events), ({ unknown }) => unknown),
        }),
      )
    }),
  )
}
