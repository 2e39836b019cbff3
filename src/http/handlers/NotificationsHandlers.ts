/** Handlers of `/v1/notifications`. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { NotificationsApi } from "../../../schemas/api/NotificationsApi.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { notificationStream } from "./NotificationStream.ts"

const Api = HttpApi.make("bailiwick").add(NotificationsApi)

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
        return { updated: yield* inbox.readAll((yield* Principal).accountId), unread: 0 }
      }),
      getNotificationPreferences: Effect.fnUntraced(function* () {
        return { preferences: yield* preferences.get(yield* Credential) }
      }),
      putNotificationPreferences: Effect.fnUntraced(function* ({ payload }) {
        return { preferences: yield* preferences.set((yield* Principal).accountId, payload) }
      }),
      readNotification: Effect.fnUntraced(function* ({ params }) {
        return json(yield* inbox.markRead((yield* Principal).accountId, params.notification_id))
      }),
    })
  }),
)
