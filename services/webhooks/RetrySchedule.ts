/**
 * The times of a failed delivery's next attempts (docs/delivery.md). Pure.
 *
 * There are eight attempts: after attempt n fails, entry n of the table passes before attempt n + 1. The eighth failure
 * is final, so the table's last entry (72 hours) is specified but never used.
 */

export interface RetrySchedule {
  /** Milliseconds after the failure of attempt 1 … 8. */
  readonly delays: ReadonlyArray<number>
  /** A retry is never earlier than the table says, and later by up to this share of the delay. */
  readonly jitter: number
}

export const maxAttempts = 8

const minute = 60_000
const hour = 60 * minute

export const specified: RetrySchedule = {
  delays: [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 24 * hour, 48 * hour, 72 * hour],
  jitter: 0.1,
}

/**
 * The time of the next attempt after attempt `attempt` (1 … 8) failed at `failedAt` (ms since the epoch), or null
 * when it was the last. `random` is in [0, 1). A receiver's `askedWait` makes a delay longer, never shorter.
 */
export const nextAttemptAt = (
  schedule: RetrySchedule,
  attempt: number,
  failedAt: number,
  random: number,
  askedWait = 0,
): number | null => {
  if (attempt >= maxAttempts) return null
  const delay = Math.max(schedule.delays[attempt - 1]!, askedWait)
  return Math.ceil(failedAt + delay * (1 + schedule.jitter * random))
}

/** An interrupted attempt does not count as one of the eight, but a delivery that kills processes must end. */
export const maxInterruptions = 5
