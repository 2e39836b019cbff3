/**
 * The words of `<bailiwick-inbox>`, and those of other languages.
 * @module
 */

/** Every word that the element shows or says. */
export interface InboxWords {
  readonly notifications: string
  readonly unread: (count: number) => string
  readonly loading: string
  readonly empty: string
  readonly signIn: string
  readonly offline: string
  readonly retry: string
  readonly markRead: string
  readonly markAllRead: string
  readonly allRead: string
  readonly more: string
  readonly settings: string
  readonly back: string
  /** Said by screen readers when notifications come; `title` is that of the newest. */
  readonly arrived: (count: number, title: string) => string
  readonly severities: Readonly<Record<"info" | "success" | "warning" | "critical", string>>
  readonly categories: Readonly<Record<"alerts" | "sends" | "team" | "domains", string>>
  readonly channels: Readonly<Record<"web" | "email" | "slack", string>>
}

export const english: InboxWords = {
  notifications: "Notifications",
  unread: (count) => `${count} unread`,
  loading: "Loading…",
  empty: "No notifications.",
  signIn: "Sign in to see your notifications.",
  offline: "The server does not answer. What is shown may be out of date.",
  retry: "Try again",
  markRead: "Mark as read",
  markAllRead: "Mark all as read",
  allRead: "All notifications are read.",
  more: "Show more",
  settings: "Settings",
  back: "Back",
  arrived: (count, title) =>
    count === 1 ? `New notification: ${title}` : `${count} new notifications, the last: ${title}`,
  severities: { info: "", success: "Success", warning: "Warning", critical: "Critical" },
  categories: { alerts: "Alerts", sends: "Sends", team: "Team", domains: "Domains" },
  channels: { web: "Here", email: "Email", slack: "Slack" },
}
