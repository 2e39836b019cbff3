/** Notifications on the bus: what any publisher may ask us to tell, and what we say was told. */
import { Schema } from "effect"
import { Category, Severity } from "../mail/Notification.ts"
import { Uuid } from "../Wire.ts"

export const notificationSubject = "intake.v1.notifications"

const line = (max: number) =>
  Schema.String.check(Schema.isPattern(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u), Schema.isMaxCodePoints(max))

/** Several lines of text; nothing else of the control characters. */
const text = (max: number) =>
  Schema.String.check(Schema.isPattern(/^(?:[^\p{Cc}\p{Cs}]|[\n\t])*$/u), Schema.isMaxCodePoints(max))

/** A path of the app: one slash at its beginning, nothing that would lead elsewhere. */
export const Href = Schema.String.check(
  Schema.isPattern(/^\/(?:[^\s\p{Cc}\p{Cs}\\<>|"/][^\s\p{Cc}\p{Cs}\\<>|"]*)?$/u),
  Schema.isMaxCodePoints(2_000),
)

/** One message on `intake.v1.notifications`. An `id` that its account was told before is dropped. */
export const NotificationMessage = Schema.Struct({
  id: line(200),
  account_id: Uuid,
  category: Category,
  severity: Severity,
  title: line(200),
  body: text(2_000),
  href: Href,
})
export type NotificationMessage = typeof NotificationMessage.Type

/** One message on `notifications.v1.<account_id>.<category>`. Bodies and addresses stay at home. */
export interface NotificationAnnounced {
  readonly id: string
  readonly account_id: string
  readonly category: Category
  readonly severity: Severity
  readonly title: string
  readonly href: string
  readonly created_at: string
}
