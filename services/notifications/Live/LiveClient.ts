/**
 * One client of the live stream: its position, and the bytes that its connection has not taken yet. No fiber, timer or
 * promise waits here: polls and checks are made for all clients at once, and bytes go straight to the connection, or
 * wait until it takes more. Ten thousand of these are in memory most of the time, so each holds only what it needs.
 */
import type { Sent } from "../../authentication/Principals.ts"
import type { Position } from "./Events.ts"

/** Unsent bytes at which a client is disconnected; it reconnects with its position and misses nothing. */
const maxUnsent = 256 * 1024

/** A client that is behind gets no more while so many bytes are unsent. */
const enough = 64 * 1024

/** How long bytes may stay unsent before the client is disconnected. */
const stuckMillis = 45_000

const heartbeatMillis = 15_000

/** The connection of a client, on the server's side. */
export interface Sink {
  /** Takes bytes; false where it wants no more until it calls `drained`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Ends the connection. `whole`: all bytes were taken. */
  readonly end: (whole: boolean) => void
}

/** The state that all outlets of a process share. */
export interface Outlets {
  readonly now: () => number
  /** Called once for each outlet that ended. */
  readonly left: (outlet: LiveClient) => void
}

export class LiveClient {
  readonly accountId: string
  /** The credentials of the request. */
  readonly sent: Sent
  /** Null until the first poll: a client without a position begins at the newest. */
  epoch: string | null
  since: number
  /** The client gets the counts even if nothing has changed. */
  owed = true
  /** There are more changes than the last page held. */
  behind = false
  /** When the credential is to be checked again. */
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

  /** Whether to poll for this client without a wake-up signal. */
  get eager(): boolean {
    return this.owed || this.behind
  }

  /** Whether the client takes more events now. */
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

  /** Keeps a quiet connection alive, and ends one whose client does not read. */
  beat(heartbeat: Uint8Array): void {
    const now = this.#all.now()
    if (this.#unsent > 0 && now - this.#takenAt > stuckMillis) return this.end()
    if (now - this.#pushedAt >= heartbeatMillis) this.push(heartbeat)
  }

  /** Attaches the connection, which takes the bytes that were pushed so far. Called once. */
  attach(sink: Sink): void {
    if (this.#ended) return sink.end(false)
    this.#sink = sink
    this.#flush()
  }

  /** The connection takes more bytes again. */
  drained(): void {
    this.#wanted = true
    this.#flush()
  }

  /** Ends the stream; the client may reconnect. Unsent bytes are dropped. */
  end(): void {
    const sink = this.#sink
    const whole = this.#unsent === 0
    if (!this.#leave()) return
    sink?.end(whole)
  }

  /** The client has disconnected. */
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
