/**
 * One request and what came back, as an undici dispatch handler: no stream, no AbortSignal, no timer of its own.
 *
 * It settles once, by the response's end, its size limit, an error or `expire`, and never by rejection. Whatever ends
 * it early also closes the connection, so that a hostile peer holds nothing of ours.
 */
import { Buffer } from "node:buffer"
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

const stopped = new Failure("body")
const expired = new Failure("timeout")

export class Exchange implements Dispatcher.DispatchHandler {
  readonly startedAt: number
  readonly #limits: Limits
  readonly #now: () => number
  readonly #done: (exchange: Exchange, outcome: Settled) => void
  #controller: Dispatcher.DispatchController | null = null
  #status: number | null = null
  #kept: Array<Uint8Array> | null = null
  #room = 0
  #read = 0
  #settled = false

  constructor(limits: Limits, now: () => number, done: (exchange: Exchange, outcome: Settled) => void) {
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

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // It expired while it waited for a connection.
    if (this.#settled) controller.abort(expired)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return
    this.#status = status
    const keep = status < 300 ? this.#limits.keepOnSuccess : this.#limits.keepOnFailure
    this.#room = Math.min(keep, this.#limits.read)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    this.#read += chunk.length
    if (this.#room > 0) {
      // A copy: the chunk is a view that would hold the socket's whole read buffer.
      const part = Uint8Array.prototype.slice.call(chunk, 0, this.#room)
      this.#room -= part.length
      if (this.#kept === null) this.#kept = [part]
      else this.#kept.push(part)
    }
    if (this.#read >= this.#limits.read) {
      this.#settle(null)
      controller.abort(stopped)
    }
  }

  onResponseEnd(): void {
    this.#settle(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(exchanging(error, this.#status !== null))
  }

  #settle(error: Reason | null): void {
    if (this.#settled) return
    this.#settled = true
    const kept = this.#kept
    this.#kept = null
    this.#done(this, {
      status: this.#status,
      body: kept === null ? null : kept.length === 1 ? kept[0]! : Buffer.concat(kept),
      error,
      durationMs: Math.max(0, this.#now() - this.startedAt),
      truncated: this.#read >= this.#limits.read,
    })
  }
}
