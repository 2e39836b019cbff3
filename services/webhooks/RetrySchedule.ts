/**
 * When a failed delivery is tried again (docs/delivery.md). Pure.
 *
 * Eight attempts in all: attempt n failing waits for entry n of the table before attempt n + 1; the eighth failure is
 * the end, so the table's last entry (72 hours) is kept, shown, and never waited for.
 */

export interface RetrySchedule {
  /** Milliseconds after the failure of attempt 1 … 8. */
  readonly delays: ReadonlyArray<number>
  /** A retry is never earlier than the table and up to this share of its delay later. */
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
 * The moment of the next attempt after attempt `attempt` (1 … 8) failed at `failedAt` (ms since the epoch), or null
 * when it was the last. `random` is in [0, 1).
 */
export const nextAttemptAt = (
  schedule: RetrySchedule,
  attempt: number,
  failedAt: number,
  random: number,
): number | null => {
  if (attempt >= maxAttempts) return null
  const delay = schedule.delays[attempt - 1]!
  return Math.ceil(failedAt + delay * (1 + schedule.jitter * random))
}

/** An attempt that ended without an outcome does not count as one of the eight, but a body that kills must stop. */
export const maxInterruptions = 5
