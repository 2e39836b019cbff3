/** Email events: the mail platform's messages, and the body for receivers. */
import { Schema } from "effect"
import { AccountUuid } from "../BrandedIds.ts"

/** The eight event types of the specification. */
export const EventType = Schema.Literals([
  "email.sent",
  "email.delivered",
  "email.opened",
  "email.clicked",
  "email.bounced",
  "email.failed",
  "email.complained",
  "email.unsubscribed",
]).annotate({ identifier: "EventType" })
export type EventType = typeof EventType.Type

export const eventTypes: ReadonlyArray<EventType> = EventType.literals

const printable = (max: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[^\\p{Cc}]{1,${max}}$`, "u")))

/** Extra metadata fields by event type; the specification names them, none is required of the publisher. */
export const metadataFields: Readonly<Record<EventType, ReadonlyArray<string>>> = {
  "email.sent": ["domain"],
  "email.delivered": ["domain", "smtp_response"],
  "email.opened": ["user_agent", "ip"],
  "email.clicked": ["url", "user_agent", "ip"],
  "email.bounced": ["dsn", "response", "bounce_type"],
  "email.failed": ["error"],
  "email.complained": ["feedback_type"],
  "email.unsubscribed": ["method"],
}

/** Every event carries `subject` and `tag`; other members pass through as they are. */
export const EventMetadata = Schema.StructWithRest(
  Schema.Struct({ subject: Schema.NullOr(Schema.String), tag: Schema.NullOr(Schema.String) }),
  [Schema.Record(Schema.String, Schema.Unknown)],
).annotate({ identifier: "EventMetadata" })

/** ISO 8601 with a zone; written out as UTC with milliseconds. */
export const EventTime = Schema.String.check(
  Schema.isPattern(
    /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})$/u,
  ),
).annotate({ format: "date-time" })

/**
 * One message on `intake.v1.mail-events.<event without "email.">`. `id` is the publisher's own: an id that its account
 * has sent before is dropped.
 */
export const MailEvent = Schema.Struct({
  id: printable(200).pipe(Schema.brand("SourceEventId")),
  event: EventType,
  account_id: AccountUuid,
  email_id: printable(200),
  recipient: printable(320),
  timestamp: EventTime,
  metadata: EventMetadata,
})
export type MailEvent = typeof MailEvent.Type

/** The body of a webhook request. */
export const WebhookBody = Schema.Struct({
  event: EventType,
  email_id: Schema.String,
  recipient: Schema.String,
  timestamp: Schema.String,
  metadata: EventMetadata,
}).annotate({ identifier: "WebhookBody", description: "The whole body, as a receiver gets it" })
export type WebhookBody = typeof WebhookBody.Type
