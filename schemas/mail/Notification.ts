/** Notifications of an account (docs/api/mail.md). */
import { Schema } from "effect"
import { NotificationId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { nextAfterId } from "./AccountView.ts"

export const Category = Schema.Literals(["alerts", "sends", "team", "domains"])
export type Category = typeof Category.Type

export const Severity = Schema.Literals(["info", "success", "warning", "critical"])
export type Severity = typeof Severity.Type

export const Channel = Schema.Literals(["web", "email", "slack"])
export type Channel = typeof Channel.Type

const byChannel = Schema.Struct({ web: Schema.Boolean, email: Schema.Boolean, slack: Schema.Boolean }).annotate({
  identifier: "NotificationChannels",
})

/** The full map from category to channel. */
export const Preferences = Schema.Struct({ alerts: byChannel, sends: byChannel, team: byChannel, domains: byChannel })
  .annotate({ identifier: "NotificationPreferences" })
export type Preferences = typeof Preferences.Type

/** The preferences of an account that has not chosen. */
export const defaultPreferences: Preferences = {
  alerts: { web: true, email: true, slack: false },
  sends: { web: true, email: false, slack: false },
  team: { web: true, email: false, slack: false },
  domains: { web: true, email: true, slack: false },
}

export const NotificationView = Schema.Struct({
  id: NotificationId,
  category: Category,
  severity: Severity,
  title: Schema.String,
  body: Schema.String,
  href: Schema.String.annotate({ description: "A path of the app" }),
  count: Schema.Int.annotate({
    description: "Repeats within an hour are one notification; `created_at` is the last one's",
  }),
  read_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
}).annotate({ identifier: "Notification" })
export type NotificationView = typeof NotificationView.Type

/**
 * Both counts ignore limit and filters, and are of the same moment as the items. `next_after_id` is in the answer to a
 * request with `limit` or `after_id`.
 */
export const NotificationList = Schema.Struct({
  items: Schema.Array(NotificationView),
  total: Schema.Int,
  unread: Schema.Int,
  next_after_id: Schema.optionalKey(nextAfterId),
}).annotate({ identifier: "NotificationList" })
export type NotificationList = typeof NotificationList.Type
