/** Decides what becomes of a delivery after a claim. Pure. */
import { nextAttemptAt, type RetrySchedule } from "../RetrySchedule.ts"
import type { Result } from "../Sender/Task.ts"

/** The outcome of a claim. */
export type Next = "delivered" | "retry" | "dead" | "released" | "interrupted"

export interface Decision {
  readonly result: Result
  readonly next: Next
  /** When the delivery is due again, in milliseconds; without meaning if it has ended. */
  readonly dueAt: number
}

const isSuccess = ({ ending, error, status }: Result): boolean =>
  ending === "answered" && error === null && status !== null && status >= 200 && status < 300

/** Decides at the time `now`, in milliseconds; `random` in [0, 1) chooses within the schedule's jitter. */
export const decide = (schedule: RetrySchedule, result: Result, now: number, random: number): Decision => {
  if (isSuccess(result)) return { result, next: "delivered", dueAt: now }
  if (result.ending === "released") return { result, next: "released", dueAt: now }
  if (result.ending === "interrupted") return { result, next: result.fatal ? "dead" : "interrupted", dueAt: now }
  const failedAt = result.startedAt + result.durationMs
  const dueAt = nextAttemptAt(schedule, result.task.attempt, failedAt, random, result.askedWait)
  return dueAt === null ? { result, next: "dead", dueAt: now } : { result, next: "retry", dueAt }
}

/** A result that was settled, with what became of its delivery. */
export type Settled = Pick<Decision, "result" | "next">
