/**
 * How fast what is due is claimed: in small bites, and with a rest after each while first tries come in. How much later
 * than asked a rest ends tells how busy the process and its machine are; the bites shrink while it is late, and grow
 * while it is not, so that a mountain of retries takes what first tries leave, and all of it where there are none.
 *
 * After a lone first try others may come for a second. Many at once come from a backlog on the bus, which intake takes as
 * fast as there is room: a moment without one is its end, and what it left in the queue is claimed at once.
 * Pure, no clock.
 */

/** Deliveries. */
const smallest = 2
const largest = 12
const whole = 64

export const restMillis = 8
const lateMillis = 3

/** For how long after a first try others may be near, and after many. */
const nearMillis = 1_000
const nearManyMillis = 100
/** First tries within a second, which come from a backlog. */
const many = 1_000

export class AdaptiveBatchSize {
  private size = 8
  private firstTryAt = -Infinity
  /** First tries of the second that began at `since`, and of the one before. */
  private since = -Infinity
  private counted = 0
  private before = 0

  /** Notes `count` first tries at `now`, in milliseconds. */
  firstTries(now: number, count: number): void {
    const seconds = (now - this.since) / 1_000
    if (seconds >= 1) {
      this.before = seconds < 2 ? this.counted : 0
      this.counted = 0
      this.since = now
    }
    this.counted += count
    this.firstTryAt = now
  }

  /** Whether first tries may come soon, so that a bite is followed by a rest. */
  rests(now: number): boolean {
    const near = Math.max(this.counted, this.before) >= many ? nearManyMillis : nearMillis
    return now - this.firstTryAt < near
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
