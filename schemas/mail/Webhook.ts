/** Webhooks as the API shows them. */
import { Schema } from "effect"
import { Id, Timestamp } from "../Wire.ts"
import { EventType } from "./MailEvent.ts"

export const WebhookView = Schema.Struct({
  id: Id,
  url: Schema.String,
  events: Schema.Array(EventType),
  is_active: Schema.Boolean,
  created_at: Timestamp,
}).annotate({ identifier: "Webhook" })
export type WebhookView = typeof WebhookView.Type

export const WebhookDetails = Schema.Struct({
  ...WebhookView.fields,
  updated_at: Timestamp,
  overlap_until: Schema.NullOr(Timestamp).annotate({
    description: "Until then the secret before the last rotation signs as well; null where one secret signs",
  }),
}).annotate({ identifier: "WebhookDetails" })
export type WebhookDetails = typeof WebhookDetails.Type

/** The form that creation and rotation answer with: the only two moments at which the secret is shown. */
export const WebhookWithSecret = Schema.Struct({
  ...WebhookView.fields,
  secret: Schema.String.check(Schema.isPattern(/^whsec_[A-Za-z0-9+/]{43}=$/u)),
}).annotate({ identifier: "WebhookWithSecret" })
export type WebhookWithSecret = typeof WebhookWithSecret.Type
