/**
 * The streams as data. Every one keeps by limits, refuses what does not fit (`discard: new`), lies in files and drops
 * repeats of a message id for two minutes, on which nothing relies.
 */
const day = 24 * 60 * 60_000

export interface StreamSpec {
  readonly subjects: ReadonlyArray<string>
  /** How long a message stays, in milliseconds. */
  readonly maxAgeMillis: number
}

export const Streams = {
  /** The platform around us to Intake: `intake.v1.mail-events.<event>` and notifications of any publisher. */
  EVENTS: { subjects: ["intake.v1.mail-events.*", "intake.v1.notifications"], maxAgeMillis: 7 * day },
  /** The platform around us to Intake: versioned changes of what it owns. */
  DIRECTORY_IN: { subjects: ["intake.v1.directory.*", "intake.v1.identity-directory.*"], maxAgeMillis: 30 * day },
  /** Due retries to whichever Dispatcher fetches them: `webhooks.v1.retry.<webhook_id>`. */
  DELIVERIES: { subjects: ["webhooks.v1.retry.*"], maxAgeMillis: day },
  /** Deliveries to operators: what came within a moment in one message a webhook, best effort. */
  RESULTS: { subjects: ["webhooks.v1.attempts.*"], maxAgeMillis: day },
  DEAD_LETTERS: { subjects: ["webhooks.v1.dead.*"], maxAgeMillis: 90 * day },
  /** `transfers.v1.<domain_id>.<status>`, in order per domain. */
  TRANSFERS: { subjects: ["transfers.v1.*.*"], maxAgeMillis: 90 * day },
  /** `lifecycle.v1.<project_id>.<kind>`, in order per project, signed. */
  LIFECYCLE: { subjects: ["lifecycle.v1.*.*"], maxAgeMillis: 90 * day },
  /** `notifications.v1.<account_id>.<category>` */
  NOTIFICATIONS: { subjects: ["notifications.v1.*.*"], maxAgeMillis: 7 * day },
  /** Any service to the Mailer: `{mail_id}`, nothing more. */
  MAIL_OUT: { subjects: ["mailer.v1.send"], maxAgeMillis: day },
  /** What we decided to the platform: `directory.v1.<kind>.<id>`. */
  DIRECTORY: { subjects: ["directory.v1.*.*"], maxAgeMillis: 30 * day },
} as const satisfies Record<string, StreamSpec>

export type StreamName = keyof typeof Streams

export const streamNames = Object.keys(Streams) as ReadonlyArray<StreamName>

/** The broker's window for repeats of a message id, in milliseconds. */
export const duplicateWindowMillis = 2 * 60_000
