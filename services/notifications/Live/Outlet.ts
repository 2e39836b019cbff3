/**
 * One client of the live stream: where it stands, and what it has not taken yet. No fiber waits here for anything but
 * the next bytes; whatever is to be looked at is looked at for all outlets at once.
 */
import { Array, Cause, Effect, Stream } from "effect"

/** Unsent bytes at which a client is let go; it comes back with its position and misses nothing. */
const maxUnsent = 256 * 1024

/** A client that is behind gets no more while this much is unsent. */
const enough = 64 * 1024

/** How long a client may leave what it was sent. */
const stuckMillis = 45_000

const heartbeatMillis = 15_000

export class Outlet {
  readonly accountId: string
  /** Null until the first look: whoever comes without a position begins at the newest. */
  epoch: string | null
  since: number
  /** Wants the counts although nothing may have changed. */
  owed = true
  /** There is more than the last page held. */
  behind = false
  /** When its credential is to be looked at again. */
  recheckAt: number
  #chunks: Array<Uint8Array> = []
  #unsent = 0
  #takenAt: number
  #pushedAt: number
  #ended = false
  #wake: (() => void) | null = null

  constructor(accountId: string, position: { readonly epoch: string; readonly version: number } | null, now: number) {
    this.accountId = accountId
    this.epoch = position?.epoch ?? null
    this.since = position?.version ?? 0
    this.recheckAt = now
    this.#takenAt = now
    this.#pushedAt = now
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

  push(chunk: Uint8Array, now: number): void {
    if (this.#ended) return
    if (this.#unsent === 0) this.#takenAt = now
    this.#chunks.push(chunk)
    this.#unsent += chunk.length
    this.#pushedAt = now
    if (this.#unsent > maxUnsent) this.end()
    this.#wake?.()
  }

  /** The client sees its stream end and may come again. What is unsent stays unsent. */
  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  /** Keeps a quiet connection alive and ends one that nobody reads. */
  beat(heartbeat: Uint8Array, now: number): void {
    if (this.#unsent > 0 && now - this.#takenAt > stuckMillis) return this.end()
    if (now - this.#pushedAt >= heartbeatMillis) this.push(heartbeat, now)
  }

  /** The bytes, until it is ended. `now` is asked at each taking. */
  stream(now: () => number): Stream.Stream<Uint8Array> {
    const take = (): ReadonlyArray<Uint8Array> => {
      const chunks = this.#chunks
      this.#chunks = []
      this.#unsent = 0
      this.#takenAt = now()
      return chunks
    }
    const pull = Effect.callback<Array.NonEmptyReadonlyArray<Uint8Array>, Cause.Done>((resume) => {
      const look = () => {
        if (!this.#ended && this.#chunks.length === 0) return
        this.#wake = null
        const chunks = this.#ended ? [] : take()
        resume(Array.isReadonlyArrayNonEmpty(chunks) ? Effect.succeed(chunks) : Cause.done())
      }
      this.#wake = look
      look()
      return Effect.sync(() => this.#wake = null)
    })
    return Stream.fromPull(Effect.succeed(pull))
  }
}
