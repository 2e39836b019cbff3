/**
 * A pool of connections to the origins of users' URLs: at most 64 per origin and 1,024 in all. When the pool is full,
 * the connection that was idle longest is closed for a new one. A request without a connection waits in its origin's
 * queue, in order, until its own deadline.
 *
 * - A request is written at most once, to a connection that is open at that moment; the pool retries nothing.
 * - After a response a connection rests until the event loop has polled once more. Bytes that follow the response then
 *   close the connection, instead of being read as the next response.
 * - A connection is closed after 4 s idle (or the receiver's `Keep-Alive: timeout`, less 2 s, at most 30 s), after
 *   5 minutes, after 1,000 exchanges, and before its next use if the newest DNS answer for its name lacks the peer's
 *   address or was refused.
 *
 * A hostile receiver gains at most 64 connections; once 1,024 are open, idle ones of other origins are closed for them.
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
/** A receiver closes an idle connection after the time that it offers; no request may be on its way at that time. */
const offerMarginMillis = 2_000

export interface PostRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>> | ReadonlyArray<string>
  readonly body: Uint8Array | string
}

export interface PoolConfig {
  readonly connect: buildConnector.connector
  /** The addresses that may be connected to, of the newest DNS answer for a name; undefined without a recent lookup. */
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
  readonly #maxConnections: number
  readonly #now: () => number
  /** Called when a connection becomes idle. */
  readonly #onIdle: () => void
  readonly #origins = new Map<string, Origin>()
  readonly #connections = new Set<HttpConnection<Origin>>()
  #opening = 0
  /** Idle connections, the one idle longest first. */
  readonly #idle = new Set<HttpConnection<Origin>>()
  #resting: Array<HttpConnection<Origin>> = []
  #rested: Array<HttpConnection<Origin>> = []
  /** Origins whose requests wait because the pool is full. */
  readonly #waitingForRoom = new Set<Origin>()
  #turn = 0
  #closed = false
  readonly #onPoll = () => this.#endRest()

  constructor(config: PoolConfig, now: () => number, onIdle: () => void) {
    this.#connect = config.connect
    this.#latest = config.latest
    this.#maxConnections = config.maxConnections ?? maxConnections
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
    // `takeIdle` may have closed the origin's last connection, and the pool has then forgotten the origin.
    this.#origins.set(name, origin)
    origin.waiting.add(request)
    this.#grow(origin)
  }

  released(connection: HttpConnection<Origin>): void {
    connection.resting = true
    connection.origin.resting++
    if (this.#resting.length + this.#rested.length === 0) setImmediate(this.#onPoll)
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
    this.#connectionGone(origin)
  }

  /** Closes connections that were idle for too long; returns whether any idle connection is left. */
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

  /** Opens connections for waiting requests that neither an opening nor a resting connection will serve. */
  #grow(origin: Origin): void {
    while (origin.waiting.size > origin.opening + origin.resting && origin.connections < maxPerOrigin) {
      if (this.connections >= this.#maxConnections) {
        const idleLongest = firstOf(this.#idle)
        if (idleLongest === undefined) {
          this.#waitingForRoom.add(origin)
          return
        }
        idleLongest.close()
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
        // Only a request that came before this attempt to connect fails with it; a later one gets its own attempt.
        const oldest = firstOf(origin.waiting)
        if (oldest !== undefined && oldest.turn <= turn) {
          origin.waiting.delete(oldest)
          oldest.exchange.onResponseError(null, error)
        }
        return this.#connectionGone(origin)
      }
      if (this.#closed) {
        socket.on("error", () => {}).destroy()
        return this.#connectionGone(origin)
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
    this.#serveWaiting()
  }

  /** A connection is ready again two turns of the event loop after its response: one poll lies between them. */
  #endRest(): void {
    const ready = this.#rested
    this.#rested = this.#resting
    this.#resting = []
    if (this.#rested.length > 0) setImmediate(this.#onPoll)
    for (const connection of ready) {
      if (!connection.resting) continue
      connection.resting = false
      connection.origin.resting--
      // A response that came before the whole request was written cannot be the response to that request.
      if (connection.written && this.#isFit(connection)) this.#ready(connection)
      else connection.close()
    }
  }

  #connectionGone(origin: Origin): void {
    origin.connections--
    if (!this.#closed) this.#grow(origin)
    this.#forget(origin)
    this.#serveWaiting()
  }

  #serveWaiting(): void {
    if (this.#closed) return
    while (this.#waitingForRoom.size > 0 && (this.connections < this.#maxConnections || this.#idle.size > 0)) {
      const origin = firstOf(this.#waitingForRoom)!
      this.#waitingForRoom.delete(origin)
      this.#grow(origin)
      this.#forget(origin)
    }
  }

  #forget(origin: Origin): void {
    if (origin.connections > 0 || origin.waiting.size > 0) return
    this.#waitingForRoom.delete(origin)
    this.#origins.delete(origin.name)
  }
}

/** A scoped pool; closing the scope closes its connections. */
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
