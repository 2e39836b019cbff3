/**
 * How fast what is due is claimed: in small bites, and with a rest after each while first tries come in. How much later
 * than asked a rest ends tells how busy the process and its machine are; the bites shrink while it is late, and grow
 * while it is not, so that a mountain of retries takes what first tries leave, and all of it where there are none.
 * Pure, no clock.
 */

/** Deliveries. */
const smallest = 2
const largest = 12
const whole = 64

export const restMillis = 8
const lateMillis = 3

/** For how long after a first try others may be near. */
const nearMillis = 1_000

export class Pace {
  private size = 8
  private firstTryAt = -Infinity

  /** Notes first tries at `now`, in milliseconds. */
  firstTries(now: number): void {
    this.firstTryAt = now
  }

  /** Whether first tries have come lately, so that a bite is followed by a rest. */
  rests(now: number): boolean {
    return now - this.firstTryAt < nearMillis
  }

  /** How many deliveries may be claimed at once. */
  bite(now: number): number {
    return this.rests(now) ? this.size : whole
  }

  /** Takes by how many milliseconds a rest was longer than asked. */
  rested(late: number): void {
    this.size = late > lateMillis ? Math.max(smallest, this.size >> 1) : Math.min(largest, this.size + 1)
  }
}
