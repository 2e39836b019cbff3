/**
 * One request and its response, without a stream, an AbortSignal or a timer of its own. Deliveries run on
 * HttpConnection; requests to the operator's URLs run on undici, for which this class is the dispatch handler.
 *
 * It ends once: with the response's end, the limit on its size, an error or `expire`. It never throws. An early end
 * also closes the connection, so that a hostile peer cannot keep it open.
 */
import type { Buffer } from "node:buffer"
import type { Dispatcher } from "undici"
import { exchanging, Failure, type Reason } from "./Failure.ts"

export interface Limits {
  /** Bytes of a 2xx response's body that are kept. */
  readonly keepOnSuccess: number
  /** Bytes of any other response's body that are kept. */
  readonly keepOnFailure: number
  /** Whether the header fields of a 2xx response are kept, too. */
  readonly headersOnSuccess?: boolean
  /** Bytes of a body that are read; reaching it completes the exchange. */
  readonly read: number
}

export interface Outcome {
  /** The response's status, also if reading its body failed; null without a response. */
  readonly status: number | null
  /** The kept part of the response's body; null if nothing was kept. */
  readonly body: Uint8Array | null
  /** Null only if the whole response was read, or its body up to the limit. */
  readonly error: Reason | null
  /** Milliseconds from the call to the end, by Effect's Clock. */
  readonly durationMs: number
  /** The response's Retry-After, as it was sent; absent where there is none. */
  readonly retryAfter?: string
  /** The header fields of a response that is no success, or of each where they are asked for; absent elsewhere. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface ExchangeOutcome extends Outcome {
  /** Reading the body stopped at the limit. */
  readonly truncated: boolean
}

/** Ends a request, whether it waits or is on its way, and its connection. */
export interface Abortable {
  readonly abort: (reason: Error) => void
}

const limitReached = new Failure("body")
const expired = new Failure("timeout")

export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly startedAt: number
  readonly #limits: Limits
  readonly #now: () => number
  readonly #done: (exchange: HttpExchange, outcome: ExchangeOutcome) => void
  #controller: Abortable | null = null
  #status: number | null = null
  #retryAfter: string | null = null
  #headers: Readonly<Record<string, string>> | null = null
  #kept: Uint8Array | null = null
  #keptBytes = 0
  /** Bytes of the body that may still be kept. */
  #room = 0
  #read = 0
  #ended = false

  constructor(limits: Limits, now: () => number, done: (exchange: HttpExchange, outcome: ExchangeOutcome) => void) {
    this.#limits = limits
    this.#now = now
    this.#done = done
    this.startedAt = now()
  }

  /** Whether the header fields of a success are kept. */
  get keepsHeaders(): boolean {
    return this.#limits.headersOnSuccess === true
  }

  /** The deadline has passed. */
  expire(): void {
    this.#end("timeout")
    this.#controller?.abort(expired)
  }

  /** The request failed before it had a connection. */
  fail(reason: Reason): void {
    this.#end(reason)
  }

  onRequestStart(controller: Abortable): void {
    this.#controller = controller
    // The exchange expired while it waited for a connection.
    if (this.#ended) controller.abort(expired)
  }

  /** The response's head was read. */
  answered(
    status: number,
    retryAfter: string | null = null,
    headers: Readonly<Record<string, string>> | null = null,
  ): void {
    this.#status = status
    this.#headers = headers
    this.#retryAfter = retryAfter
    const keep = status < 300 ? this.#limits.keepOnSuccess : this.#limits.keepOnFailure
    this.#room = Math.min(keep, this.#limits.read)
  }

  /** Takes a part of the response's body: the bytes `from` to `to` of the chunk. */
  take(chunk: Uint8Array, from: number, to: number): void {
    if (this.#ended) return
    this.#read += to - from
    if (this.#room > 0) this.#keep(chunk, from, Math.min(to, from + this.#room))
    if (this.#read >= this.#limits.read) {
      this.#end(null)
      this.#controller?.abort(limitReached)
    }
  }

  /** The connection failed. */
  broken(error: Error): void {
    this.#end(exchanging(error, this.#status !== null))
  }

  /** The connection was closed for this reason. Once the response's head was read, the reason is always `body`. */
  lost(reason: Reason): void {
    this.#end(this.#status === null ? reason : "body")
  }

  onResponseStart(_controller: unknown, status: number): void {
    if (status >= 200) this.answered(status)
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.take(chunk, 0, chunk.length)
  }

  onResponseEnd(): void {
    this.#end(null)
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.broken(error)
  }

  /** Copies the bytes: the chunk is a view that would keep the socket's whole read buffer alive. */
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

  #end(error: Reason | null): void {
    if (this.#ended) return
    this.#ended = true
    const kept = this.#kept
    this.#kept = null
    this.#done(this, {
      status: this.#status,
      body: kept === null ? null : kept.subarray(0, this.#keptBytes),
      error,
      durationMs: Math.max(0, this.#now() - this.startedAt),
      truncated: this.#read >= this.#limits.read,
      ...(this.#retryAfter === null ? {} : { retryAfter: this.#retryAfter }),
      ...(this.#headers === null ? {} : { headers: this.#headers }),
    })
  }
}
