/** Handlers of `/v1/notifications`. */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { NotificationsApi, ReadAll } from "../../../schemas/api/NotificationsApi.ts"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { NotificationView } from "../../../schemas/mail/Notification.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { keyedAround } from "./IdempotentResponse.ts"
import { notificationStream } from "./NotificationStream.ts"

const Api = HttpApi.make("bailiwick").add(NotificationsApi)

const viewOf = Schema.decodeSync(Schema.fromJsonString(NotificationView))

/** How a command is answered under its idempotency key. */
const answering = <S>(accountId: AccountId, success: S) => ({
  principal: `account:${accountId}`,
  payload: undefined,
  status: 200,
  success,
})

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

export const notifications = HttpApiBuilder.group(
  Api,
  "notifications",
  Effect.fn(function* (handlers) {
    const inbox = yield* Inbox
    const stream = yield* notificationStream
    const preferences = yield* Preferences

    return handlers.handleAll({
      listNotifications: Effect.fnUntraced(function* ({ query }) {
        return json(yield* inbox.list(yield* Credential, query))
      }),
      streamNotifications: ({ headers }) => stream(headers["last-event-id"]),
      readAllNotifications: Effect.fnUntraced(function* () {
        const { accountId } = yield* Principal
        const command = Effect.map(inbox.readAll(accountId), (updated) => ({ updated, unread: 0 }))
        return yield* keyedAround(answering(accountId, ReadAll), command)
      }),
      getNotificationPreferences: Effect.fnUntraced(function* () {
        return { preferences: yield* preferences.get(yield* Credential) }
      }),
      putNotificationPreferences: Effect.fnUntraced(function* ({ payload }) {
        return { preferences: yield* preferences.set((yield* Principal).accountId, payload) }
      }),
      readNotification: Effect.fnUntraced(function* ({ params }) {
        const { accountId } = yield* Principal
        const command = Effect.map(inbox.markRead(accountId, params.notification_id), viewOf)
        return yield* keyedAround(answering(accountId, NotificationView), command)
      }),
    })
  }),
)
