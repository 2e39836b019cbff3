/**
 * Takes email events from the bus and creates their deliveries (services/platform/messaging/BusIntake.ts describes the
 * intake).
 */
import { Context, Effect, Layer, Result, Schema } from "effect"
import { type EventType, eventTypes, MailEvent } from "../../schemas/mail/MailEvent.ts"
import { isUuid, lowerCased } from "../../schemas/Wire.ts"
import { type AccountIntake, accountIntake, type Incoming, type IntakeFault } from "../platform/messaging/BusIntake.ts"
import { fieldsAtFault, parse } from "../platform/messaging/BoundedJson.ts"
import { type Accepted, Deliveries } from "./Deliveries.ts"

export const eventSubjects = "intake.v1.mail-events.*"
const subjectOf = (event: EventType): string => `intake.v1.mail-events.${event.slice("email.".length)}`
const subjects = new Map<unknown, string>(eventTypes.map((event) => [event, subjectOf(event)]))

const decodeEvent = Schema.decodeUnknownResult(MailEvent, { errors: "all", onExcessProperty: "ignore" })

// Already in the form that receivers get: UTC with milliseconds, on a day that every month has.
const canonical = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/
const control = /\p{Cc}/u

const isPlain = (value: unknown, max: number): boolean =>
  typeof value === "string" && value !== "" && value.length <= max && !control.test(value)
const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string"
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether the value is certainly an event, at a fifth of the schema's cost; the schema decides unusual ones. */
const isUsual = (json: unknown): json is MailEvent =>
  isRecord(json) && isPlain(json["id"], 200) && subjects.has(json["event"]) &&
  typeof json["account_id"] === "string" && isUuid(json["account_id"]) && isPlain(json["email_id"], 200) &&
  isPlain(json["recipient"], 320) && typeof json["timestamp"] === "string" && canonical.test(json["timestamp"]) &&
  isRecord(json["metadata"]) && isTextOrNull(json["metadata"]["subject"]) && isTextOrNull(json["metadata"]["tag"])

/**
 * The same time in UTC with milliseconds, or null. Checks the day, since Date.parse reads 30 February as a day in
 * March.
 */
const inUtc = (text: string): string | null => {
  if (canonical.test(text)) return text
  const day = text.slice(0, 10)
  const millis = Date.parse(text)
  if (Number.isNaN(millis) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)) return null
  const written = new Date(millis).toISOString()
  return written.length === "0000-00-00T00:00:00.000Z".length ? written : null
}

const invalid = (detail: string) => Result.fail<IntakeFault>({ reason: "invalid_event", detail })

/** Reads a message: the event, with its webhook body exactly as every attempt will send it. */
export const read = ({ subject, data }: Pick<Incoming, "subject" | "data">): Result.Result<Accepted, IntakeFault> => {
  const parsed = parse(data)
  if (Result.isFailure(parsed)) return Result.fail<IntakeFault>(parsed.failure)
  const decoded = isUsual(parsed.success) ? Result.succeed(parsed.success) : decodeEvent(parsed.success)
  if (Result.isFailure(decoded)) return invalid(fieldsAtFault(decoded.failure, "the message"))
  const { account_id, email_id, event, id, metadata, recipient, timestamp: time } = decoded.success
  const belongs = subjects.get(event)
  if (belongs !== subject) {
    return Result.fail<IntakeFault>({ reason: "wrong_subject", detail: `the event belongs on ${belongs}` })
  }
  const timestamp = inUtc(time)
  if (timestamp === null) return invalid("at fault: timestamp")
  return Result.succeed({
    sourceId: id,
    accountId: lowerCased(account_id),
    event,
    body: JSON.stringify({ event, email_id, recipient, timestamp, metadata }),
  })
}

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
