/** `/v1/notifications` (docs/api/mail.md; the live stream is an extra). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { NotificationId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { Category, NotificationList, NotificationView, Preferences } from "../mail/Notification.ts"
import { InvalidCredentials } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { NotificationNotFound, PreferencesInvalid, StreamLimit } from "../problems/NotificationProblems.ts"
import { ListFilter, QueryBooleanOr, QueryInt, QueryUuid } from "../Validation/Scalars.ts"
import { HTTPValidationError } from "../Validation.ts"
import { Authenticated, Presented } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

const query = {
  unread: QueryBooleanOr(false),
  category: Schema.optionalKey(ListFilter(Category.literals)),
  /** Optional, unlike in other lists: a request without it and `after_id` gets the answer without `next_after_id`. */
  limit: Schema.optionalKey(QueryInt({ min: 1, max: 200 }, 50)),
  after_id: Schema.optionalKey(QueryUuid),
}

export const ReadAll = Schema.Struct({ updated: Schema.Int, unread: Schema.Int })

const Answer = Schema.Struct({ preferences: Preferences })

/** Any JSON: its faults are 400 or 422 by rules of their own, and unknown keys are ignored. */
const Change = Schema.Union([
  Schema.Record(Schema.String, Schema.Unknown).check(Schema.isMaxProperties(100)),
  Schema.Array(Schema.Unknown).check(Schema.isMaxLength(100)),
  Schema.String,
  Schema.Finite,
  Schema.Boolean,
]).annotate({
  "x-wire": {
    type: "object",
    required: ["preferences"],
    maxProperties: 100,
    properties: {
      preferences: {
        type: "object",
        description: "Category to channel to boolean; others stay as they are",
        additionalProperties: { type: "object", additionalProperties: { type: "boolean" } },
      },
    },
  },
})

/** `text/event-stream` (HTML Living Standard, 9.2). */
const Events = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })).annotate({
  description: "`notification`, `read-all`, `counts`, `reset`; each with `total` and `unread`",
})

export class NotificationsApi extends HttpApiGroup.make("notifications")
  .add(
    HttpApiEndpoint.get("listNotifications", "/v1/notifications", {
      query,
      success: NotificationList,
      error: InvalidCredentials,
    }).middleware(RequestValidation).middleware(Presented).annotate(
      OpenApi.Summary,
      "List notifications, newest first",
    ),
    HttpApiEndpoint.get("streamNotifications", "/v1/notifications/stream", {
      headers: { "last-event-id": Schema.optionalKey(Schema.String) },
      success: Events,
      error: StreamLimit,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Follow notifications live, from Last-Event-ID on"),
    HttpApiEndpoint.post("readAllNotifications", "/v1/notifications/read-all", {
      headers: optionallyKeyed,
      success: ReadAll,
      error: receiptProblems,
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Mark all notifications as read",
    ),
    HttpApiEndpoint.get("getNotificationPreferences", "/v1/notifications/preferences", {
      success: Answer,
      error: InvalidCredentials,
    }).middleware(RequestValidation).middleware(Presented).annotate(
      OpenApi.Summary,
      "Read the notification preferences",
    ),
    HttpApiEndpoint.put("putNotificationPreferences", "/v1/notifications/preferences", {
      payload: Change,
      success: Answer,
      error: [PreferencesInvalid, HTTPValidationError],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Change the notification preferences",
    ),
    HttpApiEndpoint.post("readNotification", "/v1/notifications/:notification_id/read", {
      params: { notification_id: NotificationId },
      headers: optionallyKeyed,
      success: NotificationView,
      error: [NotificationNotFound, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Mark one notification as read",
    ),
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Notifications",
      description: "Notifications of an account, and the channels that carry them.",
    }),
  ) {}
