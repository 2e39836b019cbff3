/**
 * The unsettled results, in memory only, each with the lease of its claim. Results whose lease ends first are settled
 * first. Pure bookkeeping, no clock and no I/O; times are in milliseconds.
 */
import type { DeliveryId } from "../../../schemas/BrandedIds.ts"
import type { Result } from "../Sender/Task.ts"

interface Entry {
  readonly result: Result
  /** When it was added. */
  readonly since: number
  leaseUntil: number
}

export class Unsettled {
  private waiting: Array<Entry> = []
  private settling: Array<Entry> = []

  /** The number of results that wait or are being settled. */
  get size(): number {
    return this.waiting.length + this.settling.length
  }

  /** The number of results that wait for their settlement to begin. */
  get waits(): number {
    return this.waiting.length
  }

  add(result: Result, now: number): void {
    this.waiting.push({ result, since: now, leaseUntil: result.task.leaseUntil })
  }

  /** Takes at most `most` results to settle; followed by `ended`, after `putBack` if they were not settled. */
  take(most: number): ReadonlyArray<Result> {
    if (this.waiting.length > most) this.waiting.sort((a, b) => a.leaseUntil - b.leaseUntil)
    this.settling = this.waiting.splice(0, most)
    return this.settling.map(({ result }) => result)
  }

  /** Removes the taken results. */
  ended(): void {
    this.settling = []
  }

  /** Lets the taken results wait again. */
  putBack(): void {
    this.waiting.unshift(...this.settling)
    this.settling = []
  }

  /** When the oldest result was added. */
  oldest(): number | undefined {
    return this.least((entry) => entry.since)
  }

  /** The earliest end of a lease. */
  firstEnd(): number | undefined {
    return this.least((entry) => entry.leaseUntil)
  }

  /** The claims of results whose lease ends before `time`. */
  endingBefore(time: number): ReadonlyArray<Result["task"]> {
    return this.all().flatMap(({ leaseUntil, result }) => leaseUntil < time ? [result.task] : [])
  }

  /** Notes that the leases of these deliveries last until `leaseUntil`. */
  renewed(deliveryIds: ReadonlySet<DeliveryId>, leaseUntil: number): void {
    for (const entry of this.all()) {
      if (deliveryIds.has(entry.result.task.deliveryId)) entry.leaseUntil = leaseUntil
    }
  }

  private all(): ReadonlyArray<Entry> {
    return [...this.settling, ...this.waiting]
  }

  private least(of: (entry: Entry) => number): number | undefined {
    return this.size === 0 ? undefined : this.all().reduce((least, entry) => Math.min(least, of(entry)), Infinity)
  }
}
