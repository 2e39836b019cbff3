/**
 * One request and what came back: no stream, no AbortSignal, no timer of its own. Deliveries run on connections of our
 * own (HttpConnection); requests to the operator's URLs run on undici, whose dispatch handler this is.
 *
 * It settles once, by the response's end, its size limit, an error or `expire`, and never by rejection. Whatever ends
 * it early also closes the connection, so that a hostile peer holds nothing of ours.
 */
import type { Buffer } from "node:buffer"
import type { Dispatcher } from "undici"
import { exchanging, Failure, type Reason } from "./Failure.ts"

export interface Limits {
  /** Bytes of a 2xx response's body that are kept. */
  readonly keepOnSuccess: number
  /** Bytes of any other response's body that are kept. */
  readonly keepOnFailure: number
  /** Bytes of a body that are read; reaching it completes the exchange. */
  readonly read: number
}

export interface Outcome {
  /** The response's status, also where its body then failed; null where no response came. */
  readonly status: number | null
  /** What was kept of the response's body; null where there is none. */
  readonly body: Uint8Array | null
  /** Null only where the whole response came (or its body reached the limit of what is read). */
  readonly error: Reason | null
  /** Milliseconds from the call to its end, by Effect's Clock. */
  readonly durationMs: number
}

export interface Settled extends Outcome {
  /** The body was longer than the limit of what is read. */
  readonly truncated: boolean
}

/** What ends a request wherever it is, with its connection. */
export interface Abortable {
  readonly abort: (reason: Error) => void
}

const stopped = new Failure("body")
const expired = new Failure("timeout")

export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly startedAt: number
  readonly #limits: Limits
  readonly #now: () => number
  readonly #done: (exchange: HttpExchange, outcome: Settled) => void
  #controller: Abortable | null = null
  #status: number | null = null
  #kept: Uint8Array | null = null
  #keptBytes = 0
  #room = 0
  #read = 0
  #settled = false

  constructor(limits: Limits, now: () => number, done: (exchange: HttpExchange, outcome: Settled) => void) {
    this.#limits = limits
    this.#now = now
    this.#done = done
    this.startedAt = now()
  }

  /** The deadline has passed. */
  expire(): void {
    this.#settle("timeout")
    this.#controller?.abort(expired)
  }

  /** It ended before or outside a connection. */
  fail(reason: Reason): void {
    this.#settle(reason)
  }

  onRequestStart(controller: Abortable): void {
    this.#controller = controller
    // It expired while it waited for a connection.
    if (this.#settled) controller.abort(expired)
  }

  /** The answer's head is there. */
  answered(status: number): void {
    this.#status = status
    const keep = status < 300 ? this.#limits.keepOnSuccess : this.#limits.keepOnFailure
    this.#room = Math.min(keep, this.#limits.read)
  }

  /** A part of the answer's body: these bytes of the chunk. */
  take(chunk: Uint8Array, from: number, to: number): void {
    if (this.#settled) return
    this.#read += to - from
    if (this.#room > 0) this.#keep(chunk, from, Math.min(to, from + this.#room))
    if (this.#read >= this.#limits.read) {
      this.#settle(null)
      this.#controller?.abort(stopped)
    }
  }

  /** Its connection failed. */
  broken(error: Error): void {
    this.#settle(exchanging(error, this.#status !== null))
  }

  /** Its connection was given up for this reason; after the answer's head, any reason is the body's. */
  lost(reason: Reason): void {
    this.#settle(this.#status === null ? reason : "body")
  }

  onResponseStart(_controller: unknown, status: number): void {
    if (status >= 200) this.answered(status)
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.take(chunk, 0, chunk.length)
  }

  onResponseEnd(): void {
    this.#settle(null)
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.broken(error)
  }

  /** Copies: the chunk is a view that would hold the socket's whole read buffer. The room doubles as parts come. */
  #keep(chunk: Uint8Array, from: number, to: number): void {
    const size = this.#keptBytes + to - from
    if (this.#kept === null) this.#kept = Uint8Array.prototype.slice.call(chunk, from, to)
    else {
      if (this.#kept.length < size) {
        const grown = new Uint8Array(Math.min(this.#keptBytes + this.#room, Math.max(size, 2 * this.#kept.length)))
        grown.set(this.#kept)
        this.#kept = grown
      }
      this.#kept.set(chunk.subarray(from, to), this.#keptBytes)
    }
    this.#room -= to - from
    this.#keptBytes = size
  }

  #settle(error: Reason | null): void {
    if (this.#settled) return
    this.#settled = true
    const kept = this.#kept
    this.#kept = null
    this.#done(this, {
      status: this.#status,
      body: kept === null ? null : kept.subarray(0, this.#keptBytes),
      error,
      durationMs: Math.max(0, this.#now() - this.startedAt),
      truncated: this.#read >= this.#limits.read,
    })
  }
}
