/**
 * Results that are not settled: in memory only, each under the lease of its claim. Those whose lease ends first are
 * settled first. Pure bookkeeping, no clock and no I/O; moments are in milliseconds.
 */
import type { Result } from "../Sender/Task.ts"

interface Held {
  readonly result: Result
  /** When it came. */
  readonly since: number
  leaseUntil: number
}

export class Unsettled {
  private waiting: Array<Held> = []
  private settling: Array<Held> = []

  /** Results that wait or are being settled. */
  get size(): number {
    return this.waiting.length + this.settling.length
  }

  /** Results that wait for their settlement to begin. */
  get waits(): number {
    return this.waiting.length
  }

  add(result: Result, now: number): void {
    this.waiting.push({ result, since: now, leaseUntil: result.task.leaseUntil })
  }

  /** Begins the settlement of at most `most`; it ends with `ended` or `putBack`. */
  take(most: number): ReadonlyArray<Result> {
    if (this.waiting.length > most) this.waiting.sort((a, b) => a.leaseUntil - b.leaseUntil)
    this.settling = this.waiting.splice(0, most)
    return this.settling.map(({ result }) => result)
  }

  /** Forgets what was taken. */
  ended(): void {
    this.settling = []
  }

  /** Lets what was taken wait again. */
  putBack(): void {
    this.waiting.unshift(...this.settling)
    this.settling = []
  }

  /** Since when the oldest has been here. */
  oldest(): number | undefined {
    return this.least((held) => held.since)
  }

  /** When the first lease ends. */
  firstEnd(): number | undefined {
    return this.least((held) => held.leaseUntil)
  }

  /** The claims of results whose lease ends before `moment`. */
  endingBefore(moment: number): ReadonlyArray<Result["task"]> {
    return this.all().flatMap(({ leaseUntil, result }) => leaseUntil < moment ? [result.task] : [])
  }

  /** Notes that the leases of these deliveries last until `leaseUntil`. */
  renewed(deliveryIds: ReadonlySet<string>, leaseUntil: number): void {
    for (const held of this.all()) {
      if (deliveryIds.has(held.result.task.deliveryId)) held.leaseUntil = leaseUntil
    }
  }

  private all(): ReadonlyArray<Held> {
    return [...this.settling, ...this.waiting]
  }

  private least(of: (held: Held) => number): number | undefined {
    return this.size === 0 ? undefined : this.all().reduce((least, held) => Math.min(least, of(held)), Infinity)
  }
}
