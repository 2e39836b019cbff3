import type { WebhookBody } from "../../schemas/mail/MailEvent.ts"

/** A complete `email.delivered` body, for a webhook's test event. */
export const sampleBody = (id: string, now: Date): string =>
  JSON.stringify(
    {
      event: "email.delivered",
      email_id: `test-${id}`,
      recipient: "recipient@example.com",
      timestamp: now.toISOString(),
      metadata: {
        subject: "A test of this webhook",
        tag: "test",
        domain: "example.com",
        smtp_response: "250 2.0.0 OK",
      },
    } satisfies WebhookBody,
  )
