/**
 * The rate of one webhook: at most `perSecond` sends begin in any second, and no send waits that may begin. Keeps the
 * starts of the last second, which are at most `perSecond`. Times are milliseconds of a clock that is never set back.
 */
const second = 1_000

export class SendRate {
  perSecond: number
  /** The time of the sleep that wakes the webhook's lines, if there is one. */
  wakeAt: number | null = null
  private readonly starts: Array<number> = []

  constructor(perSecond: number) {
    this.perSecond = perSecond
  }

  /** The time from which on a send may begin; not after `now` if it may begin now. */
  freeAt(now: number): number {
    this.forget(now)
    return this.starts.length < this.perSecond ? now : this.starts[this.starts.length - this.perSecond]! + second
  }

  /** Notes that a send begins. */
  started(now: number): void {
    this.forget(now)
    this.starts.push(now)
  }

  /** When the last remembered start stops counting; null if none is remembered. */
  get countsUntil(): number | null {
    const last = this.starts.at(-1)
    return last === undefined ? null : last + second
  }

  /** Forgets the starts of more than a second ago. */
  forget(now: number): void {
    while (this.starts.length > 0 && this.starts[0]! + second <= now) this.starts.shift()
  }
}
