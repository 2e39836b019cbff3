/**
 * The batch size for claiming due deliveries. While first tries arrive, batches are small, with a rest after each. How
 * late a rest ends shows how busy the process and the machine are: batches shrink while rests end late, and grow while
 * they end in time. So a large backlog of retries uses the capacity that first tries leave, and all of it without them.
 *
 * After a single first try, more may come within a second. Many at once come from a backlog on the bus, which intake
 * reads as fast as there is room: a short time without one means its end, and due deliveries are then claimed at once.
 * Pure, no clock.
 */

/** Deliveries. */
const smallest = 2
const largest = 12
const whole = 64

export const restMillis = 8
const lateMillis = 3

/** For this long after a first try more are expected; and after many at once. */
const nearMillis = 1_000
const nearManyMillis = 100
/** This many first tries within a second come from a backlog. */
const many = 1_000

export class AdaptiveBatchSize {
  private size = 8
  private firstTryAt = -Infinity
  /** The second that began at `since`: its first tries, and those of the second before. */
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

  /** Whether more first tries are expected, so that a rest follows each batch. */
  rests(now: number): boolean {
    const near = Math.max(this.counted, this.before) >= many ? nearManyMillis : nearMillis
    return now - this.firstTryAt < near
  }

  /** How many deliveries to claim at once. */
  batchSize(now: number): number {
    return this.rests(now) ? this.size : whole
  }

  /** Notes by how many milliseconds a rest was longer than requested. */
  rested(late: number): void {
    this.size = late > lateMillis ? Math.max(smallest, this.size >> 1) : Math.min(largest, this.size + 1)
  }
}
