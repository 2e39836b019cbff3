/**
 * One client of a live stream of Server-Sent Events (HTML Living Standard, 9.2): the bytes that its connection has not
 * taken yet. No fiber, timer or promise waits here: bytes go straight to the connection, or wait until it takes more.
 */

/** Unsent bytes at which a client is disconnected. It reconnects, and the stream's own rules say what it gets then. */
const maxUnsent = 256 * 1024

/** How long bytes may stay unsent before the client is disconnected. */
const stuckMillis = 45_000

const heartbeatMillis = 15_000

const encoder = new TextEncoder()

/** A comment, which clients ignore. */
export const heartbeat = encoder.encode(":\n\n")

const greetings = Array.from({ length: 16 }, (_, n) => encoder.encode(`retry: ${1_000 + 250 * n}\n\n`))

/**
 * The beginning of the nth stream: the delay of a reconnection, in milliseconds. The delays differ, so that after a
 * restart not all clients reconnect at the same time.
 */
export const greeting = (n: number): Uint8Array => greetings[n % greetings.length]!

/** The connection of a client, on the server's side. */
export interface Sink {
  /** Takes bytes; false where it wants no more until it calls `drained`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Ends the connection. `whole`: all bytes were taken. */
  readonly end: (whole: boolean) => void
}

export abstract class StreamOutlet {
  readonly #now: () => number
  #sink: Sink | null = null
  #wanted = true
  #waiting: Array<Uint8Array> | null = null
  #unsent = 0
  #takenAt: number
  #pushedAt: number
  #ended = false

  constructor(now: () => number) {
    this.#now = now
    this.#takenAt = now()
    this.#pushedAt = this.#takenAt
  }

  /** Called once, when the stream has ended. */
  protected abstract left(): void

  get ended(): boolean {
    return this.#ended
  }

  /** Bytes that the connection has not taken. */
  get unsent(): number {
    return this.#unsent
  }

  push(bytes: Uint8Array): void {
    if (this.#ended) return
    this.#pushedAt = this.#now()
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
  beat(): void {
    const now = this.#now()
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
    this.left()
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
    if (n > 0) this.#takenAt = this.#now()
    this.#waiting = n === chunks.length ? null : chunks.slice(n)
  }
}
