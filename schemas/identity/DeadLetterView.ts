/** Dead letters as operators see them (docs/api/identity.md). */
import { Schema } from "effect"
import { AccountId, DeliveryId, WebhookId } from "../BrandedIds.ts"
import { EventType, eventTypes } from "../mail/MailEvent.ts"
import { ListFilter, QueryUuid } from "../Validation/Scalars.ts"
import { AskedTime, Timestamp } from "../Wire.ts"
import { nextAfterId } from "./AuditView.ts"
import { DecisionReason } from "./DecisionReason.ts"
import { limitOr } from "./ListPage.ts"

const orNull = Schema.NullOr

export const OperatorDeadLetter = Schema.Struct({
  delivery_id: DeliveryId,
  account_id: AccountId,
  webhook_id: WebhookId,
  event_type: Schema.String,
  /** The last answer; null where there was none, then `error` says why. */
  response_status: orNull(Schema.Int),
  error: orNull(Schema.String),
  endpoint_url: orNull(Schema.String),
  created_at: Timestamp,
  died_at: Timestamp,
  /** Whether the webhook was deleted: then it cannot be sent again. */
  webhook_deleted: Schema.Boolean,
}).annotate({ identifier: "OperatorDeadLetter" })

export const DeadLetterPage = Schema.Struct({ items: Schema.Array(OperatorDeadLetter), next_after_id: nextAfterId })
  .annotate({ identifier: "DeadLetterPage" })
export type DeadLetterPage = typeof DeadLetterPage.Type

export const deadLetterQuery = {
  account_id: Schema.optionalKey(AccountId),
  webhook_id: Schema.optionalKey(WebhookId),
  event_type: Schema.optionalKey(ListFilter(eventTypes)),
  /** Deliveries made at this time or later. */
  since: Schema.optionalKey(AskedTime),
  /** Deliveries made before this time. */
  until: Schema.optionalKey(AskedTime),
  limit: limitOr(50),
  after_id: Schema.optionalKey(QueryUuid),
}

export const countQuery = {
  webhook_id: WebhookId,
  since: AskedTime,
  until: Schema.optionalKey(AskedTime),
  /** Events of this type only. */
  event_type: Schema.optionalKey(EventType),
  /** Those that were given up by then: of a replay's `asked_at`, what it has yet to send. By default by now. */
  asked_at: Schema.optionalKey(AskedTime),
}

export const DeadLetterReplay = Schema.Struct({
  webhook_id: WebhookId,
  /** Deliveries made at this time or later. */
  since: AskedTime,
  /** Deliveries made before this time; by default before now. */
  until: Schema.optionalKey(Schema.NullOr(AskedTime)),
  /** Events of this type only; by default of every type. */
  event_type: Schema.optionalKey(Schema.NullOr(EventType)),
  reason: DecisionReason,
}).annotate({ identifier: "DeadLetterReplay" })

export const LettersReplayed = Schema.Struct({ deliveries: Schema.Int }).annotate({ identifier: "LettersReplayed" })
export type LettersReplayed = typeof LettersReplayed.Type

export const SpanReplayed = Schema.Struct({
  deliveries: Schema.Int,
  /** Dead letters that are given up after this time are no part of the replay. */
  asked_at: Timestamp,
}).annotate({ identifier: "SpanReplayed" })
export type SpanReplayed = typeof SpanReplayed.Type
