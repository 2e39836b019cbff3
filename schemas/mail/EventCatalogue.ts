/** The event types with their meaning, a JSON schema and an example of each, for those who write receivers. */
import { Schema } from "effect"
import { WebhookId } from "../BrandedIds.ts"
import { EventType, metadataFields, WebhookBody } from "./MailEvent.ts"

interface Described {
  readonly meaning: string
  readonly metadata: Readonly<Record<string, string>>
}

const agent = { user_agent: "Mozilla/5.0 (X11; Linux x86_64)", ip: "192.0.2.7" }

/** The meaning of each type, and an example of its own members of `metadata`. */
const described: Readonly<Record<EventType, Described>> = {
  "email.sent": { meaning: "Handed off to the recipient's mail server", metadata: { domain: "example.com" } },
  "email.delivered": {
    meaning: "The recipient's mail server confirmed the delivery",
    metadata: { domain: "example.com", smtp_response: "250 2.0.0 OK" },
  },
  "email.opened": { meaning: "The tracking pixel was loaded", metadata: agent },
  "email.clicked": { meaning: "A tracked link was clicked", metadata: { url: "https://example.com/news", ...agent } },
  "email.bounced": {
    meaning: "Permanently rejected by the recipient's server",
    metadata: { dsn: "5.1.1", response: "550 5.1.1 User unknown", bounce_type: "hard" },
  },
  "email.failed": { meaning: "An internal error or a configuration problem", metadata: { error: "no route to host" } },
  "email.complained": {
    meaning: "The recipient marked it as spam, as a feedback loop says",
    metadata: { feedback_type: "abuse" },
  },
  "email.unsubscribed": {
    meaning: "The List-Unsubscribe link or one-click unsubscribe was used",
    metadata: { method: "one-click" },
  },
}

/** An example of the members of `metadata` that a type has beside `subject` and `tag`. */
export const exampleMetadata = (event: EventType): Readonly<Record<string, string>> => described[event].metadata

export const EventTypeView = Schema.Struct({
  event_type: EventType,
  meaning: Schema.String,
  metadata_fields: Schema.Array(Schema.String).annotate({
    description: "Members of `metadata` that are usual for the type, beside `subject` and `tag`",
  }),
  json_schema: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "JSON Schema (2020-12) of the body; members that it does not name may come as well",
  }),
  example: WebhookBody,
  webhook_ids: Schema.Array(WebhookId).annotate({
    description: "Your webhooks that take the type, paused ones included",
  }),
}).annotate({ identifier: "EventTypeDetails" })
export type EventTypeView = typeof EventTypeView.Type

export const EventTypes = Schema.Struct({ items: Schema.Array(EventTypeView) }).annotate({ identifier: "EventTypes" })

const text = { type: "string" }
const textOrNull = { type: ["string", "null"] }

/**
 * The JSON schema of a type's body. It demands what every body has and types no other member of `metadata`: the mail
 * platform's own values pass through as they are.
 */
const jsonSchemaOf = (event_type: EventType) => {
  const { meaning, metadata } = described[event_type]
  const usual = metadataFields[event_type].map((name) =>
    [name, { description: "Usual, not promised", examples: [metadata[name]] }] as const
  )
  const properties: Readonly<Record<keyof WebhookBody, object>> = {
    event: { const: event_type },
    email_id: text,
    recipient: text,
    timestamp: { ...text, format: "date-time", description: "Of the event, in UTC with milliseconds" },
    metadata: {
      type: "object",
      required: ["subject", "tag"],
      properties: { subject: textOrNull, tag: textOrNull, ...Object.fromEntries(usual) },
    },
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: event_type,
    description: meaning,
    type: "object",
    required: Object.keys(properties),
    properties,
  }
}

/** The catalogue for an account; `takers`: the ids of its webhooks by type. */
export const catalogue = (takers: ReadonlyMap<EventType, ReadonlyArray<WebhookId>>): ReadonlyArray<EventTypeView> =>
  EventType.literals.map((event_type) => {
    const { meaning, metadata } = described[event_type]
    return {
      event_type,
      meaning,
      metadata_fields: metadataFields[event_type],
      json_schema: jsonSchemaOf(event_type),
      example: {
        event: event_type,
        email_id: "b7f2c1de-6a0e-4e0c-9a57-3f0b8c6f2d11",
        recipient: "recipient@example.com",
        timestamp: "2026-01-01T12:00:00.000Z",
        metadata: { subject: "Welcome", tag: "onboarding", ...metadata },
      },
      webhook_ids: takers.get(event_type) ?? [],
    }
  })
