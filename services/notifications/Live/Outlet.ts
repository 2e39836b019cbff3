/**
 * One client of the live stream: where it stands, and what it has not taken yet. No fiber, timer or promise waits here:
 * whatever is to be looked at is looked at for all outlets at once, and bytes go straight to the connection, or wait
 * until it takes more. Ten thousand of them are in memory most of the time, so it holds nothing that it does not need.
 */
import type { Sent } from "../../authentication/Principals.ts"
import type { Position } from "./Events.ts"

/** Unsent bytes at which a client is let go; it comes back with its position and misses nothing. */
const maxUnsent = 256 * 1024

/** A client that is behind gets no more while this much is unsent. */
const enough = 64 * 1024

/** How long a client may leave what it was sent. */
const stuckMillis = 45_000

const heartbeatMillis = 15_000

/** The connection, as its server has it. */
export interface Sink {
  /** Takes bytes; false where it wants no more until it says `drained`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Nothing follows. `whole`: everything was taken that there was. */
  readonly end: (whole: boolean) => void
}

/** What all outlets of a process share. */
export interface Outlets {
  readonly now: () => number
  /** Told once of each that ended. */
  readonly left: (outlet: Outlet) => void
}

export class Outlet {
  readonly accountId: string
  /** What it was recognised by. */
  readonly sent: Sent
  /** Null until the first look: whoever comes without a position begins at the newest. */
  epoch: string | null
  since: number
  /** Wants the counts although nothing may have changed. */
  owed = true
  /** There is more than the last page held. */
  behind = false
  /** When its credential is to be looked at again. */
  recheckAt: number
  readonly #all: Outlets
  #sink: Sink | null = null
  #wanted = true
  #waiting: Array<Uint8Array> | null = null
  #unsent = 0
  #takenAt: number
  #pushedAt: number
  #ended = false

  constructor(all: Outlets, accountId: string, sent: Sent, position: Position | null, recheckAt: number) {
    this.#all = all
    this.accountId = accountId
    this.sent = sent
    this.epoch = position?.epoch ?? null
    this.since = position?.version ?? 0
    this.recheckAt = recheckAt
    this.#takenAt = all.now()
    this.#pushedAt = this.#takenAt
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether it is to be looked at without any bell. */
  get eager(): boolean {
    return this.owed || this.behind
  }

  /** Whether it takes what may come now. */
  get open(): boolean {
    return !this.#ended && !(this.behind && this.#unsent > enough)
  }

  push(bytes: Uint8Array): void {
    if (this.#ended) return
    this.#pushedAt = this.#all.now()
    if (this.#unsent === 0) this.#takenAt = this.#pushedAt
    if (this.#sink !== null && this.#wanted && this.#waiting === null) {
      this.#wanted = this.#sink.write(bytes)
      return
    }
    this.#waiting ??= []
    this.#waiting.push(bytes)
    this.#unsent += bytes.length
    if (this.#unsent > maxUnsent) this.end()
  }

  /** Keeps a quiet connection alive and ends one that nobody reads. */
  beat(heartbeat: Uint8Array): void {
    const now = this.#all.now()
    if (this.#unsent > 0 && now - this.#takenAt > stuckMillis) return this.end()
    if (now - this.#pushedAt >= heartbeatMillis) this.push(heartbeat)
  }

  /** The connection is there and takes what was pushed so far. Once. */
  attach(sink: Sink): void {
    if (this.#ended) return sink.end(false)
    this.#sink = sink
    this.#flush()
  }

  /** The connection wants more. */
  drained(): void {
    this.#wanted = true
    this.#flush()
  }

  /** The client sees its stream end and may come again. What is unsent stays unsent. */
  end(): void {
    const sink = this.#sink
    const whole = this.#unsent === 0
    if (!this.#leave()) return
    sink?.end(whole)
  }

  /** The client went away. */
  gone(): void {
    this.#leave()
  }

  #leave(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.#waiting = null
    this.#sink = null
    this.#all.left(this)
    return true
  }

  #flush(): void {
    if (this.#waiting === null || this.#sink === null) return
    const chunks = this.#waiting
    let n = 0
    while (n < chunks.length && this.#wanted) {
      const bytes = chunks[n++]!
      this.#unsent -= bytes.length
      this.#wanted = this.#sink.write(bytes)
    }
    if (n > 0) this.#takenAt = this.#all.now()
    this.#waiting = n === chunks.length ? null : chunks.slice(n)
  }
}
