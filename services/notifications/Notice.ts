import type { AccountId } from "../../schemas/BrandedIds.ts"
import type { Category, Channel, Severity } from "../../schemas/mail/Notification.ts"

/** A notice to an account. */
export interface Notice {
  readonly accountId: AccountId
  readonly category: Category
  readonly severity: Severity
  readonly title: string
  readonly body: string
  /** A path of the app, beginning with one slash. */
  readonly href: string
  /**
   * Notices with the same key within an hour become one notification with a count and the time of the last one; other
   * channels send it once.
   */
  readonly coalesceKey?: string
  /** Channels that are left out, whatever the account prefers, for example because another mail says the same. */
  readonly without?: ReadonlyArray<Channel>
}
