/**
 * The specification of the streams. Each keeps messages by limits, refuses new ones that do not fit (`discard: new`),
 * is stored in files, and drops repeats of a message id for two minutes, on which no code relies.
 */
const day = 24 * 60 * 60_000

export interface StreamSpec {
  readonly subjects: ReadonlyArray<string>
  /** How long a message stays, in milliseconds. */
  readonly maxAgeMillis: number
}

export const BusStreams = {
  /** From the mail platform to Intake: `intake.v1.mail-events.<event>`, and notifications of any publisher. */
  EVENTS: { subjects: ["intake.v1.mail-events.*", "intake.v1.notifications"], maxAgeMillis: 7 * day },
  /** From the mail platform and identity management to Intake: versioned lines of the directory. */
  DIRECTORY_IN: { subjects: ["intake.v1.directory.*", "intake.v1.identity-directory.*"], maxAgeMillis: 30 * day },
  /** Due retries, for any Dispatcher that fetches them: `webhooks.v1.retry.<webhook_id>`. */
  DELIVERIES: { subjects: ["webhooks.v1.retry.*"], maxAgeMillis: day },
  /** Attempts, for operators: those of a short interval in one message per webhook, best effort. */
  RESULTS: { subjects: ["webhooks.v1.attempts.*"], maxAgeMillis: day },
  DEAD_LETTERS: { subjects: ["webhooks.v1.dead.*"], maxAgeMillis: 90 * day },
  /** `transfers.v1.<domain_id>.<status>`, in order per domain. */
  TRANSFERS: { subjects: ["transfers.v1.*.*"], maxAgeMillis: 90 * day },
  /** `lifecycle.v1.<project_id>.<kind>`, in order per project, signed. */
  LIFECYCLE: { subjects: ["lifecycle.v1.*.*"], maxAgeMillis: 90 * day },
  /** `notifications.v1.<account_id>.<category>` */
  NOTIFICATIONS: { subjects: ["notifications.v1.*.*"], maxAgeMillis: 7 * day },
  /** From any service to the Mailer: `{mail_id}`, and no other field. */
  MAIL_OUT: { subjects: ["mailer.v1.send"], maxAgeMillis: day },
  /** Decisions of this program, for the mail platform: `directory.v1.<kind>.<id>`. */
  DIRECTORY: { subjects: ["directory.v1.*.*"], maxAgeMillis: 30 * day },
  /** Checkpoints of the transparency log, each before it is served, with the entries since the one before. */
  DECISION_LOG: { subjects: ["log.v1.checkpoint"], maxAgeMillis: 90 * day },
} as const satisfies Record<string, StreamSpec>

export type StreamName = keyof typeof BusStreams

export const streamNames = Object.keys(BusStreams) as ReadonlyArray<StreamName>

/** The broker's window for repeats of a message id, in milliseconds. */
export const duplicateWindowMillis = 2 * 60_000
