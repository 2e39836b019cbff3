/**
 * One connection and its exchanges, one after the other: each request goes out once, in one write, and the bytes that
 * follow are its response. The connection is closed after a response that was cut off or refused, when bytes follow a
 * response, and when bytes arrive while no request is on its way.
 *
 * A hostile receiver may send bytes before it has read a request. They are read as the response to that request, since
 * HTTP/1.1 cannot tell the two apart. No other receiver is affected: a connection belongs to one origin.
 */
import type { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import type { HttpExchange } from "./HttpExchange.ts"
import { type ResponseHandler, ResponseParser } from "./ResponseParser.ts"

/** The pool that owns a connection. */
export interface Owner<Origin> {
  /** The response is read, and HTTP lets the connection carry another exchange. */
  readonly released: (connection: HttpConnection<Origin>) => void
  /** The connection is closed; called once, before its exchange ends. */
  readonly closed: (connection: HttpConnection<Origin>) => void
}

/** A request that a connection can carry. */
export interface Sendable<Origin> {
  readonly bytes: string | Uint8Array
  readonly exchange: HttpExchange
  connection: HttpConnection<Origin> | null
}

/** `Origin`: the pool's record of the destination; not used in this class. */
export class HttpConnection<Origin> implements ResponseHandler {
  readonly #socket: Socket
  readonly #owner: Owner<Origin>
  readonly #parser = new ResponseParser(this)
  #exchange: HttpExchange | null = null
  #open = true
  readonly origin: Origin
  readonly madeAt: number
  readonly remoteAddress: string | undefined
  /** Number of requests sent on this connection. */
  exchanges = 0
  /** The pool sets it after a response, until the event loop has polled once more. */
  resting = false
  idleSince = 0

  constructor(origin: Origin, madeAt: number, socket: Socket, owner: Owner<Origin>) {
    this.origin = origin
    this.madeAt = madeAt
    this.remoteAddress = socket.remoteAddress
    this.#socket = socket
    this.#owner = owner
    socket.on("data", (chunk: Buffer) => this.#read(chunk))
    socket.on("end", () => this.#ended())
    socket.on("error", (error) => this.#broken(error))
    socket.on("close", () => this.lose("reset"))
  }

  get open(): boolean {
    return this.#open && !this.#socket.destroyed
  }

  /** Whether the whole request was handed to the kernel: a response may arrive before that. */
  get written(): boolean {
    return this.#socket.writableLength === 0
  }

  get offeredMillis(): number | null {
    return this.#parser.offeredMillis
  }

  send(request: Sendable<Origin>): void {
    const { bytes, exchange } = request
    request.connection = this
    this.#exchange = exchange
    this.exchanges++
    this.#parser.begin(exchange.keepsHeaders)
    if (typeof bytes === "string") this.#socket.write(bytes, "utf8")
    else this.#socket.write(bytes)
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#exchange = null
    this.#parser.stop()
    this.#socket.destroy()
    this.#owner.closed(this)
  }

  /** The exchange ended early: closes the connection if it still carries this exchange. */
  abandon(exchange: HttpExchange): void {
    if (this.#exchange === exchange) this.close()
  }

  /** Closes the connection and fails its exchange, if it has one. */
  lose(reason: "reset" | "protocol"): void {
    const exchange = this.#exchange
    this.close()
    exchange?.lost(reason)
  }

  head(status: number): void {
    this.#exchange?.answered(status, this.#parser.retryAfter, this.#parser.keptFields)
  }

  body(chunk: Buffer, from: number, to: number): void {
    this.#exchange?.take(chunk, from, to)
  }

  #read(chunk: Buffer): void {
    // No request is on its way, so these bytes are no response.
    if (this.#exchange === null) return this.close()
    const nothingFollows = this.#parser.read(chunk)
    if (this.#parser.refused) this.lose("protocol")
    else if (this.#parser.done) this.#finished(nothingFollows)
  }

  #finished(nothingFollows: boolean): void {
    const exchange = this.#exchange
    this.#exchange = null
    if (nothingFollows && this.#parser.keep) this.#owner.released(this)
    else this.close()
    exchange?.onResponseEnd()
  }

  #ended(): void {
    if (this.#parser.end()) this.#finished(false)
    else this.lose("reset")
  }

  #broken(error: Error): void {
    const exchange = this.#exchange
    this.close()
    exchange?.broken(error)
  }
}
