/** Notifications on the bus: requests of any publisher, and announcements of this program. */
import { Schema } from "effect"
import { AccountUuid, NotificationUuid } from "../BrandedIds.ts"
import { Category, Severity } from "../mail/Notification.ts"
import { Timestamp } from "../Wire.ts"

export const notificationSubject = "intake.v1.notifications"

const line = (max: number) =>
  Schema.String.check(Schema.isPattern(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u), Schema.isMaxCodePoints(max))

/** Several lines of text, without other control characters. */
const text = (max: number) =>
  Schema.String.check(Schema.isPattern(/^(?:[^\p{Cc}\p{Cs}]|[\n\t])*$/u), Schema.isMaxCodePoints(max))

/** A path of the app: it begins with one slash, and cannot lead to another host. */
export const Href = Schema.String.check(
  Schema.isPattern(/^\/(?:[^\s\p{Cc}\p{Cs}\\<>|"/][^\s\p{Cc}\p{Cs}\\<>|"]*)?$/u),
  Schema.isMaxCodePoints(2_000),
)

/** One message on `intake.v1.notifications`. An `id` that its account has received before is dropped. */
export const NotificationMessage = Schema.Struct({
  id: line(200),
  account_id: AccountUuid,
  category: Category,
  severity: Severity,
  title: line(200),
  body: text(2_000),
  href: Href,
})
export type NotificationMessage = typeof NotificationMessage.Type

/** One message on `notifications.v1.<account_id>.<category>`. It holds no body and no address. */
export const NotificationAnnounced = Schema.Struct({
  id: NotificationUuid,
  account_id: AccountUuid,
  category: Category,
  severity: Severity,
  title: Schema.String,
  href: Schema.String,
  created_at: Timestamp,
})
export type NotificationAnnounced = typeof NotificationAnnounced.Type
