/** Deliveries over all webhooks of an account, and what leads to them (docs/api/mail.md; extras). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { WebhookId } from "../BrandedIds.ts"
import { DeliveryList, DeliveryStatus } from "../mail/Delivery.ts"
import { DeliveryHours, DeliveryStatistics } from "../mail/DeliveryStatistics.ts"
import { EventTypes } from "../mail/EventCatalogue.ts"
import { EventType, eventTypes } from "../mail/MailEvent.ts"
import { RateLimited } from "../problems/HttpProblems.ts"
import { StreamLimit } from "../problems/NotificationProblems.ts"
import { WebhookNotFound } from "../problems/WebhookProblems.ts"
import { ListFilter } from "../Validation/Scalars.ts"
import { AskedTime } from "../Wire.ts"
import { cursorPage } from "./AccountApi.ts"
import { Authenticated } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

const ReplayCount = Schema.Struct({ deliveries: Schema.Int }).annotate({ identifier: "ReplayCount" })

const textFilter = (description: string) => ListFilter([]).annotate({ "x-wire": { type: "string", description } })

const statsSpan = {
  /** Attempts that began in the minute of this time or later; 30 days ago at most. */
  since: Schema.optionalKey(AskedTime),
  /** Minutes that began before this time. */
  until: Schema.optionalKey(AskedTime),
}

/** `text/event-stream` (HTML Living Standard, 9.2). */
const Events = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })).annotate({
  description: "`newest` with `items`, then `changed` with the `items` that are new or changed, and `skipped`",
})

export class DeliveriesApi extends HttpApiGroup.make("deliveries")
  .add(
    HttpApiEndpoint.get("listAllDeliveries", "/v1/webhook-deliveries", {
      query: {
        status: Schema.optionalKey(ListFilter(DeliveryStatus.literals)),
        event_type: Schema.optionalKey(ListFilter(eventTypes)),
        webhook_id: Schema.optionalKey(WebhookId),
        response_status: Schema.optionalKey(textFilter(
          "Of the last attempt: a status (`404`), a class (`5xx`), or `none` where no answer came",
        )),
        email_id: Schema.optionalKey(textFilter("The `email_id` of the payload, exactly")),
        event_id: Schema.optionalKey(
          textFilter("The event's id on the mail platform, exactly").pipe(Schema.brand("SourceEventId")),
        ),
        /** Deliveries made at this time or later. */
        since: Schema.optionalKey(AskedTime),
        /** Deliveries made before this time. */
        until: Schema.optionalKey(AskedTime),
        ...cursorPage,
      },
      success: DeliveryList,
    }).annotate(OpenApi.Summary, "List the deliveries of all your webhooks, newest first"),
    HttpApiEndpoint.get("streamDeliveries", "/v1/webhook-deliveries/stream", { success: Events, error: StreamLimit })
      .annotate(OpenApi.Summary, "Follow the newest deliveries of all your webhooks live"),
    HttpApiEndpoint.get("countReplay", "/v1/webhooks/:webhook_id/replay", {
      params: { webhook_id: WebhookId },
      query: {
        since: AskedTime,
        until: Schema.optionalKey(AskedTime),
        /** By default dead letters, as of the replay itself. */
        status: Schema.optionalKey(Schema.Literals(["dead_letter", "delivered", "missed"])),
        /** Events of this type only. */
        event_type: Schema.optionalKey(EventType),
        /** By default now. */
        asked_at: Schema.optionalKey(AskedTime.annotate({
          description:
            "Dead letters given up by then: of a replay's `asked_at`, what it has yet to send; of no effect on others",
        })),
      },
      success: ReplayCount,
      error: [WebhookNotFound, RateLimited],
    }).annotate(OpenApi.Summary, "Count the deliveries that a replay of this span would send again, and send none"),
    HttpApiEndpoint.get("webhookStats", "/v1/webhook-stats", {
      query: statsSpan,
      success: DeliveryStatistics,
    }).annotate(OpenApi.Summary, "Count the attempts of all your webhooks by minute; by default of the last 24 hours"),
    HttpApiEndpoint.get("deliveryHours", "/v1/webhook-stats/hours", { success: DeliveryHours })
      .annotate(
        OpenApi.Summary,
        "Count the attempts of each webhook by the hour, of the last 24 hours, with its newest delivery",
      ),
    HttpApiEndpoint.get("oneWebhookStats", "/v1/webhooks/:webhook_id/stats", {
      params: { webhook_id: WebhookId },
      query: statsSpan,
      success: DeliveryStatistics,
      error: WebhookNotFound,
    }).annotate(OpenApi.Summary, "Count the attempts of one webhook by minute; by default of the last 24 hours"),
    HttpApiEndpoint.get("listEventTypes", "/v1/event-types", { success: EventTypes })
      .annotate(OpenApi.Summary, "The event types, with an example of each and your webhooks that take it"),
  )
  .middleware(RequestValidation)
  .middleware(Authenticated)
  .annotateMerge(OpenApi.annotations({ title: "Deliveries", description: "Deliveries of all webhooks together." })) {}
