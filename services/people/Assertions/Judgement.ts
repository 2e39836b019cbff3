/** The pure rules of an assertion: which step, which counter counts, and how long codes are locked after failures. */

/** A code's step counts once for ever: only a later one than the last that counted. */
export const isNewStep = (step: number, last: number | null): boolean => last === null || step > last

/**
 * Whether a signature's counter shows that the credential was not copied (WebAuthn Level 3, 6.1.1): it rises with every
 * signature, unless the authenticator counts none.
 */
export const isNewCount = (counter: number, last: number): boolean => counter === 0 && last === 0 || counter > last

/** Failures in a row, and until when the kind is locked; in milliseconds. */
export interface Lockout {
  readonly failed: number
  readonly lockedUntil: number | null
}

export const unlocked: Lockout = { failed: 0, lockedUntil: null }

/** Failures in a row that lock nothing. */
export const freeFailures = 4
const firstLockMillis = 60_000
const longestLockMillis = 3_600_000

/**
 * The lock-out after one more failure: the fifth in a row locks for a minute, each further one twice as long, up to an
 * hour. An attacker who guesses all the time has some 30 guesses a day, each of which hits one time in 333,333.
 */
export const afterFailure = ({ failed }: Lockout, now: number): Lockout => {
  const sum = failed + 1
  if (sum <= freeFailures) return { failed: sum, lockedUntil: null }
  const millis = Math.min(longestLockMillis, firstLockMillis * 2 ** Math.min(30, sum - freeFailures - 1))
  return { failed: sum, lockedUntil: now + millis }
}

/** The whole seconds for which the kind is locked, at least 1; 0 where it is not. */
export const lockedSeconds = ({ lockedUntil }: Lockout, now: number): number =>
  lockedUntil === null || lockedUntil <= now ? 0 : Math.ceil((lockedUntil - now) / 1_000)
