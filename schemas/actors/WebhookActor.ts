/**
 * The actor of one webhook: runs its changes, one at a time. Deliveries, and commands that must run once only, bypass
 * it.
 */
import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { EventType } from "../mail/MailEvent.ts"
import { WebhookView } from "../mail/Webhook.ts"
import { WebhookNotFound } from "../problems/WebhookProblems.ts"
import { HTTPValidationError } from "../Validation.ts"

/** The request that caused a command: audit records of the actor name it. */
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
