/** The mailbox of one webhook: its changes, one at a time. Deliveries do not pass through it, nor what is done only once. */
import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { EventType } from "../mail/MailEvent.ts"
import { WebhookView } from "../mail/Webhook.ts"
import { WebhookNotFound } from "../problems/Webhooks.ts"
import { HTTPValidationError } from "../Validation.ts"

/** In whose name a command runs: the audit of an actor tells the request that caused it. */
export const Origin = Schema.Struct({
  requestId: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
})

const command = { origin: Origin, accountId: Schema.String }

export const WebhookActor = Entity.make("Webhook", [
  Rpc.make("Update", {
    payload: {
      ...command,
      url: Schema.optionalKey(Schema.String),
      events: Schema.optionalKey(Schema.Array(EventType)),
      isActive: Schema.optionalKey(Schema.Boolean),
    },
    success: WebhookView,
    error: Schema.Union([WebhookNotFound, HTTPValidationError]),
  }),
])
