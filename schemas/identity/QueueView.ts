/** Queues of the program and webhooks by their backlog, for operators (docs/api/identity.md). */
import { Schema } from "effect"
import { AccountId, WebhookId } from "../BrandedIds.ts"
import { PausedBy } from "../mail/Webhook.ts"
import { Timestamp } from "../Wire.ts"

export const QueueName = Schema.Literals([
  "first_tries",
  "retries",
  "outbox_unordered",
  "outbox_ordered",
  "mails",
  "slack",
  "jobs",
  "timers",
  "provider_jobs",
]).annotate({ identifier: "QueueName" })
export type QueueName = typeof QueueName.Type

export const Queues = Schema.Struct({
  as_of: Timestamp,
  items: Schema.Array(Schema.Struct({
    queue: QueueName,
    /** The number of messages that wait or are under way. */
    depth: Schema.Int,
    /** Whether there is more than was counted. */
    capped: Schema.Boolean,
    /** Those that wait and are due. */
    due: Schema.Int,
    /** Since when the oldest of that is due; null where nothing is. */
    oldest_due_at: Schema.NullOr(Timestamp),
    /** Those that a process has claimed. */
    leased: Schema.Int,
    /** Those that failed before and are tried again. */
    failing: Schema.Int,
    /**
     * Those that were done in the last full minute; null where that is not counted. `first_tries` has the attempts of
     * retries as well.
     */
    per_minute: Schema.NullOr(Schema.Int),
  })),
}).annotate({ identifier: "Queues" })
export type Queues = typeof Queues.Type

export const WebhookBacklogs = Schema.Struct({
  as_of: Timestamp,
  /** Whether more deliveries wait than were counted. */
  capped: Schema.Boolean,
  items: Schema.Array(Schema.Struct({
    webhook_id: WebhookId,
    account_id: AccountId,
    /** Null where the webhook was deleted. */
    url: Schema.NullOr(Schema.String),
    paused: Schema.Boolean,
    /** Null while it is active, or where an earlier release paused it. */
    paused_by: Schema.NullOr(PausedBy),
    /** Deliveries that wait or are under way. */
    depth: Schema.Int,
    retries: Schema.Int,
    leased: Schema.Int,
    /** When the oldest of them is or was due; null where none waits. */
    oldest_due_at: Schema.NullOr(Timestamp),
  })),
}).annotate({ identifier: "WebhookBacklogs" })
export type WebhookBacklogs = typeof WebhookBacklogs.Type

/** A webhook of any account, after an operator paused or resumed it. */
export const OperatedWebhook = Schema.Struct({
  webhook_id: WebhookId,
  account_id: AccountId,
  url: Schema.String,
  is_active: Schema.Boolean,
  paused_at: Schema.NullOr(Timestamp),
  paused_by: Schema.NullOr(PausedBy),
}).annotate({ identifier: "OperatedWebhook" })
export type OperatedWebhook = typeof OperatedWebhook.Type

/** How many deliveries are due now that would have waited for longer. */
export const KickedDeliveries = Schema.Struct({ deliveries: Schema.Int }).annotate({ identifier: "KickedDeliveries" })
export type KickedDeliveries = typeof KickedDeliveries.Type
