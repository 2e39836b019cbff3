/** Attempts of deliveries by minute. */
import { Schema } from "effect"
import { DeliveryId, WebhookId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { DeliveryStatus } from "./Delivery.ts"

const DeliveryMinute = Schema.Struct({
  minute: Timestamp.annotate({ description: "When the minute began in which the attempts began" }),
  delivered: Schema.Int,
  failed: Schema.Int.annotate({ description: "Attempts that failed and are followed by another one" }),
  dead_letter: Schema.Int.annotate({ description: "Attempts that failed and were the last one" }),
  ms_average: Schema.Int.annotate({ description: "How long an attempt took, on average" }),
  ms_max: Schema.Int,
}).annotate({ identifier: "DeliveryMinute" })

export const DeliveryStatistics = Schema.Struct({
  items: Schema.Array(DeliveryMinute).annotate({
    description: "Oldest first; minutes without an attempt are left out. A page spans a day at most",
  }),
  ms_p50: Schema.NullOr(Schema.Int).annotate({
    description: "Half of the page's attempts took at most so many milliseconds, to within a factor of two",
  }),
  ms_p99: Schema.NullOr(Schema.Int).annotate({ description: "The same of 99 of 100 attempts" }),
  next_since: Schema.NullOr(Timestamp).annotate({
    description: "The `since` of the next page; null on the last page",
  }),
}).annotate({ identifier: "DeliveryStatistics" })
export type DeliveryStatistics = typeof DeliveryStatistics.Type

const DeliveryHour = Schema.Struct({
  hour: Timestamp.annotate({ description: "When the hour began in which the attempts began" }),
  delivered: Schema.Int,
  failed: Schema.Int.annotate({ description: "Attempts that failed and are followed by another one" }),
  dead_letter: Schema.Int.annotate({ description: "Attempts that failed and were the last one" }),
}).annotate({ identifier: "DeliveryHour" })

/** The last day of each webhook of an account, for an overview of many. */
export const DeliveryHours = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      webhook_id: WebhookId,
      hours: Schema.Array(DeliveryHour).annotate({
        description: "Oldest first; the hour that has begun is the last one. Hours without an attempt are left out",
      }),
    }).annotate({ identifier: "WebhookHours" }),
  ).annotate({ description: "Webhooks without an attempt are left out" }),
  newest: Schema.Array(
    Schema.Struct({
      webhook_id: WebhookId,
      delivery_id: DeliveryId,
      status: DeliveryStatus,
      created_at: Timestamp,
    }).annotate({ identifier: "NewestDelivery" }),
  ).annotate({
    description: "The newest delivery of each webhook, whenever it was made; webhooks that keep none are left out",
  }),
}).annotate({ identifier: "DeliveryHours" })
export type DeliveryHours = typeof DeliveryHours.Type
