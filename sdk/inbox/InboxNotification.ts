/** A notification, as the events of `<bailiwick-inbox>` carry it. */
export interface InboxNotification {
  readonly id: string
  readonly category: "alerts" | "sends" | "team" | "domains"
  readonly severity: "info" | "success" | "warning" | "critical"
  readonly title: string
  readonly body: string
  /** A path of the app. */
  readonly href: string
  /** How often it was repeated within its hour. */
  readonly count: number
  /** RFC 3339; null while it is unread. */
  readonly read_at: string | null
  /** RFC 3339; of a repeated one the last time. */
  readonly created_at: string
}
