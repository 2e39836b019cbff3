/** Messages about deliveries of webhooks, for operators. They hold no body, no address and no secret. */
import { Schema } from "effect"
import { AccountId, DeliveryId, WebhookId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"

const AttemptReport = Schema.Struct({
  delivery_id: DeliveryId,
  /** Which run of attempts: a replay begins the next. */
  cycle: Schema.Int,
  attempt: Schema.Int,
  outcome: Schema.Literals(["delivered", "retry", "dead", "interrupted"]),
  response_status: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
  started_at: Timestamp,
  duration_ms: Schema.Number,
}).annotate({ identifier: "WebhookAttemptReport" })
export type AttemptReport = typeof AttemptReport.Type

/** A message on `webhooks.v1.attempts.<webhook_id>`: attempts of a short interval, best effort. */
export const AttemptReports = Schema.Struct({ webhook_id: WebhookId, attempts: Schema.Array(AttemptReport) })
export type AttemptReports = typeof AttemptReports.Type

/** A message on `webhooks.v1.dead.<webhook_id>`: a delivery that failed for good. */
export const DeadLetterMessage = Schema.Struct({
  delivery_id: DeliveryId,
  webhook_id: WebhookId,
  account_id: AccountId,
})
export type DeadLetterMessage = typeof DeadLetterMessage.Type
