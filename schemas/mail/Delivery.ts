/** Deliveries as the API shows them (docs/delivery.md). */
import { Schema } from "effect"
import { DeliveryId, WebhookId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"
import { EventType, WebhookBody } from "./MailEvent.ts"

/**
 * `pending` until the first attempt ended, `retrying` while another is due, then one of the ends: `delivered`,
 * `dead_letter` (eight attempts failed), `cancelled` (by its account, or because its webhook was deleted).
 */
export const DeliveryStatus = Schema.Literals(["pending", "retrying", "delivered", "dead_letter", "cancelled"])
  .annotate({
    identifier: "DeliveryStatus",
  })
export type DeliveryStatus = typeof DeliveryStatus.Type

/** Why an attempt failed without an HTTP status, or a further note on it. */
export const AttemptError = Schema.NullOr(Schema.String)

export const DeliveryRecord = Schema.Struct({
  id: DeliveryId,
  webhook_id: WebhookId,
  event_type: EventType,
  status: DeliveryStatus,
  response_status: Schema.NullOr(Schema.Int),
  attempt: Schema.Int,
  next_retry_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
}).annotate({ identifier: "WebhookDelivery" })
export type DeliveryRecord = typeof DeliveryRecord.Type

const HeaderFields = Schema.Record(Schema.String, Schema.String)

export const Attempt = Schema.Struct({
  cycle: Schema.Int,
  attempt: Schema.Int,
  started_at: Timestamp,
  duration_ms: Schema.Int,
  response_status: Schema.NullOr(Schema.Int),
  error: AttemptError,
  request_headers: HeaderFields.annotate({
    description: "Without custom headers; of a signature its first characters alone: it is not kept",
  }),
  response_headers: Schema.NullOr(HeaderFields).annotate({
    description:
      "Up to 4 KiB; credentials, and what repeats a custom header, are masked. Null for a success at the first attempt, unless the installation keeps it",
  }),
  response_body: Schema.NullOr(Schema.String).annotate({
    description: "Of a failed answer, the first 4,096 characters",
  }),
}).annotate({ identifier: "WebhookAttempt" })

export const FullDeliveryRecord = Schema.Struct({
  ...DeliveryRecord.fields,
  payload: WebhookBody,
  response_body: Schema.NullOr(Schema.String),
  endpoint_url: Schema.NullOr(Schema.String),
  error: AttemptError,
  attempts: Schema.Array(Attempt),
}).annotate({ identifier: "WebhookDeliveryDetails" })

/** The request of an attempt, without what only its secret can make. */
export const SentRequest = Schema.Struct({
  url: Schema.NullOr(Schema.String),
  headers: HeaderFields.annotate({ description: "The `request_headers` of the last attempt" }),
  body: Schema.String.annotate({ description: "The body, byte for byte as every attempt sends it" }),
}).annotate({ identifier: "WebhookSentRequest" })

export const SentDelivery = Schema.Struct({
  ...FullDeliveryRecord.fields,
  request: Schema.NullOr(SentRequest).annotate({ description: "Null until the first attempt has ended" }),
}).annotate({ identifier: "WebhookDeliverySent" })

export const DeliveryPage = Schema.Struct({
  items: Schema.Array(DeliveryRecord),
  total: Schema.Int,
  page: Schema.Int,
  limit: Schema.Int,
}).annotate({ identifier: "WebhookDeliveryPage" })

/** A page of the deliveries of all webhooks. */
export const DeliveryList = Schema.Struct({
  items: Schema.Array(DeliveryRecord),
  next_after_id: Schema.NullOr(Id).annotate({
    description:
      "The `after_id` of the next page; null on the last page. A page with a filter may hold fewer items than " +
      "`limit`, or none, and still have a next one: each looks at a bounded number of deliveries",
  }),
}).annotate({ identifier: "WebhookDeliveryList" })
export type DeliveryList = typeof DeliveryList.Type
