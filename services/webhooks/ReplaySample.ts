import type { EventId } from "../../schemas/BrandedIds.ts"
import { exampleMetadata } from "../../schemas/mail/EventCatalogue.ts"
import type { EventType, WebhookBody } from "../../schemas/mail/MailEvent.ts"

/** The type of a test event whose request names none. */
export const defaultSample: EventType = "email.delivered"

/** A complete body of the type, for a webhook's test event. */
export const sampleBody = (event: EventType, id: EventId, now: Date): string =>
  JSON.stringify(
    {
      event,
      email_id: `test-${id}`,
      recipient: "recipient@example.com",
      timestamp: now.toISOString(),
      metadata: { subject: "A test of this webhook", tag: "test", ...exampleMetadata(event) },
    } satisfies WebhookBody,
  )
