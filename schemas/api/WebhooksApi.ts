/** `/v1/webhooks` and `/v1/webhook-deliveries` (docs/api/mail.md; rotation and replays are extras). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DeliveryId, WebhookId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { DeliveryPage, DeliveryStatus, FullDeliveryRecord, SentDelivery } from "../mail/Delivery.ts"
import { EventType } from "../mail/MailEvent.ts"
import { BasicAuth, CustomHeaders } from "../mail/WebhookHeaders.ts"
import { BroughtSecret, WebhookDetails, WebhookView, WebhookWithSecret } from "../mail/Webhook.ts"
import { InvalidCredentials, RateLimited } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import {
  DeliveryNotFound,
  DeliveryNotWaiting,
  DeliveryUnderWay,
  WebhookHeld,
  WebhookLimit,
  WebhookNotFound,
} from "../problems/WebhookProblems.ts"
import { complains, valueError } from "../Validation/Fault.ts"
import {
  BodyBoolean,
  BodyInt,
  BodyIntOr,
  ListFilter,
  maxCodePoints,
  QueryBooleanOr,
  QueryIntOr,
  Text,
} from "../Validation/Scalars.ts"
import { HTTPValidationError } from "../Validation.ts"
import { AskedTime, Timestamp } from "../Wire.ts"
import { Authenticated, Presented } from "./CredentialsApi.ts"
import { CalledAddresses, RequestValidation } from "./RequestValidation.ts"

/** Also checked by the address policy: see WEBHOOKS_ALLOWED_CIDRS. */
const WebhookUrl = Schema.String.check(
  maxCodePoints(2048),
  Schema.makeFilter<string>((text) => /^https?:\/\/[^\s/\\?#]\S*$/i.test(text), {
    expected: "an https URL",
    toJsonSchema: () => [{ pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/\\\\?#]\\S*$" }, true],
    ...complains(valueError("URL should begin with https:// and a host, and hold no space.")),
  }),
).annotate({
  format: "uri",
  description: "https, at most 2048 characters, no user information, no private or reserved address",
})

const called = (body: unknown) => [{ loc: ["url"], url: Object(body).url }]

/** At least one; repeats collapse. There are fewer types than the bound, which keeps a refusal cheap. */
const Events = Schema.Array(EventType).check(Schema.isMinLength(1), Schema.isMaxLength(100))

// "or null" means that a field may be null or absent; both leave it as it is.
const orNull = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Description = Text(0, 500).annotate({ description: "What the webhook is for; an empty text removes it" })

const settings = {
  description: orNull(Description),
  headers: orNull(CustomHeaders),
  basic_auth: orNull(BasicAuth),
  honor_retry_after: orNull(BodyBoolean).annotate({
    description:
      "Lets `Retry-After` of a failed answer make the next attempt later, by a day at most; by default false",
  }),
  rate_limit: orNull(BodyInt({ min: 0, max: 1_000 })).annotate({
    description: "How many deliveries may begin in a second; 0, the default, for any number",
  }),
}

export const NewWebhook = Schema.Struct({
  url: WebhookUrl,
  events: Events,
  ...settings,
  is_active: orNull(BodyBoolean).annotate({ description: "By default true" }),
  secret: orNull(BroughtSecret).annotate({
    description: "The secret of an endpoint that was served elsewhere; by default a new one",
  }),
}).annotate({ identifier: "NewWebhook" })
export type NewWebhook = typeof NewWebhook.Type

export const WebhookUpdate = Schema.Struct({
  url: orNull(WebhookUrl),
  events: orNull(Events),
  ...settings,
  is_active: orNull(BodyBoolean),
}).annotate({ identifier: "WebhookUpdate" })
export type WebhookUpdate = typeof WebhookUpdate.Type

export const SecretRotation = Schema.Struct({
  overlap_seconds: BodyIntOr({ min: 0, max: 604_800 }, 86_400),
}).annotate({ identifier: "SecretRotation" })

export const ReplayRequest = Schema.Struct({
  since: AskedTime,
  until: orNull(AskedTime),
  status: orNull(Schema.Literals(["dead_letter", "delivered", "missed"])).annotate({
    description: "`missed`: events that came while it was paused, once each; by default dead letters",
  }),
  event_type: orNull(EventType).annotate({ description: "Events of this type only; by default of every type" }),
}).annotate({ identifier: "ReplayRequest" })
export type ReplayRequest = typeof ReplayRequest.Type

export const TestRequest = Schema.Struct({
  event: orNull(EventType).annotate({ description: "The type of the sample; by default `email.delivered`" }),
}).annotate({ identifier: "WebhookTestRequest" })

export const TestAnswer = Schema.Struct({ queued: Schema.Boolean, url: Schema.String })
export const Replayed = Schema.Struct({
  replayed: Schema.Int,
  asked_at: Timestamp.annotate({
    description: "Of dead letters: those that are given up later are no part of the replay",
  }),
})

export const ChangedDelivery = Schema.Struct({ id: DeliveryId, status: DeliveryStatus })

const params = { webhook_id: WebhookId }
const delivery = { delivery_id: DeliveryId }

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("listWebhooks", "/v1/webhooks/", {
      query: { include_paused: QueryBooleanOr(false) },
      success: Schema.Array(WebhookView),
      error: InvalidCredentials,
    }).middleware(RequestValidation).middleware(Presented).annotate(OpenApi.Summary, "List webhooks, newest first"),
    HttpApiEndpoint.post("createWebhook", "/v1/webhooks/", {
      payload: NewWebhook,
      headers: optionallyKeyed,
      success: WebhookWithSecret.pipe(HttpApiSchema.status(201)),
      error: [WebhookLimit, HTTPValidationError, InvalidCredentials, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(CalledAddresses, called)
      .annotate(OpenApi.Summary, "Create a webhook; its signing secret is in this answer"),
    HttpApiEndpoint.get("getWebhook", "/v1/webhooks/:webhook_id", {
      params,
      success: WebhookDetails,
      error: WebhookNotFound,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Read one webhook, active or paused, without its secret"),
    HttpApiEndpoint.patch("updateWebhook", "/v1/webhooks/:webhook_id", {
      params,
      payload: WebhookUpdate,
      success: WebhookView,
      error: [WebhookNotFound, WebhookHeld, HTTPValidationError],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(CalledAddresses, called)
      .annotate(OpenApi.Summary, "Change, pause or resume a webhook"),
    HttpApiEndpoint.delete("deleteWebhook", "/v1/webhooks/:webhook_id", {
      params,
      success: HttpApiSchema.NoContent,
      error: WebhookNotFound,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Delete a webhook; its waiting deliveries are cancelled"),
    HttpApiEndpoint.post("rotateSecret", "/v1/webhooks/:webhook_id/rotate-secret", {
      params,
      payload: SecretRotation,
      headers: optionallyKeyed,
      success: WebhookWithSecret,
      error: [WebhookNotFound, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Give a webhook a new secret; the old one signs beside it for a while"),
    HttpApiEndpoint.post("testWebhook", "/v1/webhooks/:webhook_id/test", {
      params,
      payload: TestRequest,
      headers: optionallyKeyed,
      success: TestAnswer,
      error: [WebhookNotFound, RateLimited, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Queue a sample event of a type of your choice, email.delivered by default",
    ),
    HttpApiEndpoint.post("replayWebhook", "/v1/webhooks/:webhook_id/replay", {
      params,
      payload: ReplayRequest,
      headers: optionallyKeyed,
      success: Replayed.pipe(HttpApiSchema.status(202)),
      error: [WebhookNotFound, RateLimited, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Send again deliveries that ended in a span of time; by default dead letters"),
    HttpApiEndpoint.get("listDeliveries", "/v1/webhooks/:webhook_id/deliveries", {
      params,
      query: {
        page: QueryIntOr({ min: 0, max: 100_000_000 }, 0),
        limit: QueryIntOr({ min: 1, max: 100 }, 20),
        status: Schema.optionalKey(ListFilter(DeliveryStatus.literals)),
      },
      success: DeliveryPage,
      error: [WebhookNotFound, InvalidCredentials],
    }).middleware(RequestValidation).middleware(Presented).annotate(OpenApi.Summary, "List deliveries, newest first"),
    HttpApiEndpoint.get("getWebhookDelivery", "/v1/webhooks/:webhook_id/deliveries/:delivery_id", {
      params: { ...params, ...delivery },
      success: FullDeliveryRecord,
      error: DeliveryNotFound,
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Read one delivery with its attempts",
    ),
    HttpApiEndpoint.get("getDelivery", "/v1/webhook-deliveries/:delivery_id", {
      params: delivery,
      success: SentDelivery,
      error: DeliveryNotFound,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Read one delivery, found by its id alone, with the request that was sent"),
    HttpApiEndpoint.post("replayDelivery", "/v1/webhook-deliveries/:delivery_id/replay", {
      params: delivery,
      headers: optionallyKeyed,
      success: ChangedDelivery.pipe(HttpApiSchema.status(202)),
      error: [DeliveryNotFound, DeliveryUnderWay, RateLimited, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Send one delivery again, in a new cycle of attempts"),
    HttpApiEndpoint.post("retryDelivery", "/v1/webhook-deliveries/:delivery_id/retry", {
      params: delivery,
      headers: optionallyKeyed,
      success: ChangedDelivery.pipe(HttpApiSchema.status(202)),
      error: [DeliveryNotFound, DeliveryNotWaiting, RateLimited, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Make the next attempt of a waiting delivery now; it counts as one of the eight"),
    HttpApiEndpoint.post("cancelDelivery", "/v1/webhook-deliveries/:delivery_id/cancel", {
      params: delivery,
      headers: optionallyKeyed,
      success: ChangedDelivery,
      error: [DeliveryNotFound, DeliveryNotWaiting, RateLimited, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "End a waiting delivery without a further attempt; a replay may send it again"),
  )
  .annotateMerge(OpenApi.annotations({ title: "Webhooks", description: "Signed email events, with retries." })) {}
