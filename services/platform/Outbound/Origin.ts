/** What the pool keeps of an origin: its connections and the requests that wait for one. */
import type { buildConnector } from "undici"
import type { Abortable, HttpExchange } from "./HttpExchange.ts"
import type { HttpConnection, Sendable } from "./HttpConnection.ts"

export class Origin {
  readonly name: string
  readonly host: string
  readonly target: buildConnector.Options
  readonly waiting = new Set<WaitingRequest>()
  /** Ready for a request, the one used last at the end. */
  readonly idle: Array<HttpConnection<Origin>> = []
  /** All that it has: being made, on the wire, at rest, idle. */
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
  /** Orders it among requests and beginnings of connections. */
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
