/** An origin in the pool: its connections, and the requests that wait for one. */
import type { buildConnector } from "undici"
import type { Abortable, HttpExchange } from "./HttpExchange.ts"
import type { HttpConnection, Sendable } from "./HttpConnection.ts"

export class Origin {
  readonly name: string
  readonly host: string
  readonly target: buildConnector.Options
  readonly waiting = new Set<WaitingRequest>()
  /** Connections that are ready for a request, the one used last at the end. */
  readonly idle: Array<HttpConnection<Origin>> = []
  /** Number of its connections: opening, in use, resting and idle. */
  connections = 0
  opening = 0
  resting = 0

  constructor(name: string) {
    const { host, hostname, port, protocol } = new URL(name)
    this.name = name
    this.host = host
    this.target = { host, hostname: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname, port, protocol }
  }
}

export class WaitingRequest implements Abortable, Sendable<Origin> {
  readonly origin: Origin
  readonly bytes: string | Uint8Array
  readonly exchange: HttpExchange
  /** Its number in the pool's sequence; a connection attempt remembers the number at which it began. */
  readonly turn: number
  connection: HttpConnection<Origin> | null = null

  constructor(origin: Origin, bytes: string | Uint8Array, exchange: HttpExchange, turn: number) {
    this.origin = origin
    this.bytes = bytes
    this.exchange = exchange
    this.turn = turn
  }

  abort(): void {
    if (this.connection === null) this.origin.waiting.delete(this)
    else this.connection.abandon(this.exchange)
  }
}
