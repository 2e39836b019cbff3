/**
 * Kept connections to the origins of users' URLs, bounded: 64 an origin and 1,024 in all, the one that was idle longest
 * closed for a new one. A request that finds none waits in its origin's queue, in order, within its own deadline.
 *
 * - A request is written at most once, to a connection that stood at that moment; nothing is tried again.
 * - After an answer a connection rests until the event loop has polled once more, so that bytes right behind the answer
 *   close it instead of being read as the next answer.
 * - A connection is closed after 4 s without use (or what the receiver offers, less 2 s, at most 30 s), 5 minutes,
 *   1,000 exchanges, and before its next use once its name has newer addresses without its peer's, or only refused ones.
 *
 * What a hostile receiver gains: 64 connections, and the closing of other origins' idle ones once 1,024 are open.
 */
import type { buildConnector } from "undici"
import { Clock, Effect, Latch } from "effect"
import { counted } from "../MapSizes.ts"
import type { HttpExchange } from "./HttpExchange.ts"
import { HttpConnection, type Owner } from "./HttpConnection.ts"
import { Origin, WaitingRequest } from "./Origin.ts"
import { requestOf } from "./RequestHead.ts"

const maxPerOrigin = 64
const maxConnections = 1_024
const maxAgeMillis = 300_000
const maxExchanges = 1_000
const idleMillis = 4_000
const maxIdleMillis = 30_000
/** A receiver closes after what it offers: by then no request may be on its way. */
const offerMarginMillis = 2_000

export interface PostRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>> | ReadonlyArray<string>
  readonly body: Uint8Array | string
}

export interface PoolConfig {
  readonly connect: buildConnector.connector
  /** The newest addresses of a name that may be connected to; undefined for one that was not looked up lately. */
  readonly latest: (hostname: string) => ReadonlySet<string> | undefined
  readonly maxConnections?: number
}

const firstOf = <A>(set: ReadonlySet<A>): A | undefined => {
  for (const first of set) return first
  return undefined
}

class ConnectionPool implements Owner<Origin> {
  readonly #connect: buildConnector.connector
  readonly #latest: PoolConfig["latest"]
  readonly #most: number
  readonly #now: () => number
  /** Called when a connection becomes idle. */
  readonly #onIdle: () => void
  readonly #origins = new Map<string, Origin>()
  readonly #connections = new Set<HttpConnection<Origin>>()
  #opening = 0
  /** In the order in which they became idle. */
  readonly #idle = new Set<HttpConnection<Origin>>()
  #resting: Array<HttpConnection<Origin>> = []
  #rested: Array<HttpConnection<Origin>> = []
  /** Origins whose requests wait for room among all connections. */
  readonly #crowded = new Set<Origin>()
  #turn = 0
  #closed = false
  readonly #wake = () => this.#endRest()

  constructor(config: PoolConfig, now: () => number, onIdle: () => void) {
    this.#connect = config.connect
    this.#latest = config.latest
    this.#most = config.maxConnections ?? maxConnections
    this.#now = now
    this.#onIdle = onIdle
  }

  get origins(): number {
    return this.#origins.size
  }

  get connections(): number {
    return this.#connections.size + this.#opening
  }

  post(name: string, { body, headers, path }: PostRequest, exchange: HttpExchange): void {
    if (this.#closed) return exchange.fail("reset")
    let origin = this.#origins.get(name)
    if (origin === undefined) this.#origins.set(name, origin = new Origin(name))
    const bytes = requestOf(origin.host, path, headers, body)
    if (bytes === null) {
      this.#forget(origin)
      return exchange.fail("protocol")
    }
    const request = new WaitingRequest(origin, bytes, exchange, ++this.#turn)
    exchange.onRequestStart(request)
    const connection = this.#takeIdle(origin)
    if (connection !== undefined) return connection.send(request)
    // Closing its last idle connection has made the pool forget it.
    this.#origins.set(name, origin)
    origin.waiting.add(request)
    this.#grow(origin)
  }

  released(connection: HttpConnection<Origin>): void {
    connection.resting = true
    connection.origin.resting++
    if (this.#resting.length + this.#rested.length === 0) setImmediate(this.#wake)
    this.#resting.push(connection)
  }

  closed(connection: HttpConnection<Origin>): void {
    const { origin } = connection
    this.#connections.delete(connection)
    if (this.#idle.delete(connection)) origin.idle.splice(origin.idle.indexOf(connection), 1)
    if (connection.resting) {
      connection.resting = false
      origin.resting--
    }
    this.#gone(origin)
  }

  /** Closes what was idle for long enough; gives whether any idle connection is left. */
  sweep(): boolean {
    const now = this.#now()
    for (const connection of [...this.#idle]) {
      const { idleSince, offeredMillis } = connection
      const most = offeredMillis === null ? idleMillis : Math.min(offeredMillis - offerMarginMillis, maxIdleMillis)
      if (now - idleSince >= most || !this.#isFit(connection)) connection.close()
    }
    return this.#idle.size > 0
  }

  close(): void {
    this.#closed = true
    for (const { waiting } of [...this.#origins.values()]) {
      for (const request of [...waiting]) {
        waiting.delete(request)
        request.exchange.fail("reset")
      }
    }
    for (const connection of [...this.#connections]) connection.lose("reset")
  }

  #isFit(connection: HttpConnection<Origin>): boolean {
    const { exchanges, madeAt, offeredMillis, origin, remoteAddress } = connection
    if (!connection.open || exchanges >= maxExchanges || this.#now() - madeAt >= maxAgeMillis) return false
    if (offeredMillis !== null && offeredMillis <= offerMarginMillis) return false
    const latest = this.#latest(origin.target.hostname)
    return latest === undefined || (remoteAddress !== undefined && latest.has(remoteAddress))
  }

  #takeIdle(origin: Origin): HttpConnection<Origin> | undefined {
    for (let found = origin.idle.at(-1); found !== undefined; found = origin.idle.at(-1)) {
      if (!this.#isFit(found)) {
        found.close()
        continue
      }
      origin.idle.pop()
      this.#idle.delete(found)
      return found
    }
    return undefined
  }

  /** Makes connections for the requests that no coming one will serve. */
  #grow(origin: Origin): void {
    while (origin.waiting.size > origin.opening + origin.resting && origin.connections < maxPerOrigin) {
      if (this.connections >= this.#most) {
        const longest = firstOf(this.#idle)
        if (longest === undefined) {
          this.#crowded.add(origin)
          return
        }
        longest.close()
      } else this.#open(origin)
    }
  }

  #open(origin: Origin): void {
    origin.connections++
    origin.opening++
    this.#opening++
    const turn = this.#turn
    this.#connect(origin.target, (...[error, socket]) => {
      origin.opening--
      this.#opening--
      if (error !== null) {
        // A request that came after the attempt began gets one of its own.
        const oldest = firstOf(origin.waiting)
        if (oldest !== undefined && oldest.turn <= turn) {
          origin.waiting.delete(oldest)
          oldest.exchange.onResponseError(null, error)
        }
        return this.#gone(origin)
      }
      if (this.#closed) {
        socket.on("error", () => {}).destroy()
        return this.#gone(origin)
      }
      const connection = new HttpConnection(origin, this.#now(), socket, this)
      this.#connections.add(connection)
      this.#ready(connection)
    })
  }

  #ready(connection: HttpConnection<Origin>): void {
    const { origin } = connection
    const request = firstOf(origin.waiting)
    if (request !== undefined) {
      origin.waiting.delete(request)
      return connection.send(request)
    }
    connection.idleSince = this.#now()
    origin.idle.push(connection)
    this.#idle.add(connection)
    this.#onIdle()
    this.#uncrowd()
  }

  /** Two turns of the event loop after its answer, a poll between them, a connection is ready again. */
  #endRest(): void {
    const ready = this.#rested
    this.#rested = this.#resting
    this.#resting = []
    if (this.#rested.length > 0) setImmediate(this.#wake)
    for (const connection of ready) {
      if (!connection.resting) continue
      connection.resting = false
      connection.origin.resting--
      // An answer to a request that is not out yet says nothing of it.
      if (connection.written && this.#isFit(connection)) this.#ready(connection)
      else connection.close()
    }
  }

  #gone(origin: Origin): void {
    origin.connections--
    if (!this.#closed) this.#grow(origin)
    this.#forget(origin)
    this.#uncrowd()
  }

  #uncrowd(): void {
    if (this.#closed) return
    while (this.#crowded.size > 0 && (this.connections < this.#most || this.#idle.size > 0)) {
      const origin = firstOf(this.#crowded)!
      this.#crowded.delete(origin)
      this.#grow(origin)
      this.#forget(origin)
    }
  }

  #forget(origin: Origin): void {
    if (origin.connections > 0 || origin.waiting.size > 0) return
    this.#crowded.delete(origin)
    this.#origins.delete(origin.name)
  }
}

/** A scoped pool; what it holds is closed with the scope. */
export const make = Effect.fnUntraced(function* (config: PoolConfig) {
  const clock = yield* Clock.Clock
  const busy = Latch.makeUnsafe(false)
  const pool = new ConnectionPool(config, () => clock.currentTimeMillisUnsafe(), () => busy.openUnsafe())
  yield* counted("origins, checked", () => pool.origins)
  yield* counted("connections, checked", () => pool.connections)
  yield* busy.await.pipe(
    Effect.andThen(Effect.sleep("1 second")),
    Effect.andThen(Effect.sync(() => {
      if (!pool.sweep()) busy.closeUnsafe()
    })),
    Effect.forever,
    Effect.forkScoped,
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => pool.close()))
  return (name: string, request: PostRequest, exchange: HttpExchange): void => pool.post(name, request, exchange)
})
