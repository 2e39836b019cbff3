/**
 * How long an Access lasts: pure decisions on its end. An end is set and moved to a later time, or taken away, by a reviewed
 * request alone; an earlier one needs no review, since it gives nothing. An active Access that has an end has a timer.
 */
import type { Timer } from "../platform/database/Timers.ts"

/** Times are milliseconds since 1970. */
export interface Term {
  readonly active: boolean
  /** Null: it has no end. */
  readonly endsAt: number | null
}

/** Whether an end comes after another one; having none is later than any. */
export const isLater = (one: number | null, other: number | null): boolean =>
  other !== null && (one === null || one > other)

/** The term with an earlier end; or why it cannot have that end without a review. */
export const shortened = (
  term: Term,
  endsAt: number,
  now: number,
): Term | "not_active" | "not_future" | "not_earlier" =>
  !term.active
    ? "not_active"
    : endsAt <= now
    ? "not_future"
    : isLater(term.endsAt, endsAt)
    ? { ...term, endsAt }
    : "not_earlier"

/** The term after a reviewed request for this end: a request never shortens. */
export const lengthened = (term: Term, endsAt: number | null): Term =>
  term.active && isLater(endsAt, term.endsAt) ? { ...term, endsAt } : term

/** The term after a reviewed revocation at `now`: an end that is over, or comes before, stays. */
export const endedBy = (term: Term, now: number): Term =>
  term.active && isLater(term.endsAt, now) ? { ...term, endsAt: now } : term

/** Whether the Access has to be revoked at `now`. */
export const isOver = ({ active, endsAt }: Term, now: number): boolean => active && endsAt !== null && endsAt <= now

export const accessTimer = "access-end"

/** The timers of an Access: one in every state that time changes. */
export const timersOf = ({ active, endsAt }: Term): ReadonlyArray<Timer> =>
  active && endsAt !== null ? [{ kind: accessTimer, dueAt: endsAt }] : []
