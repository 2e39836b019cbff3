/**
 * One connection and the exchanges on it, one after the other: a request goes out in one write, once, and what comes
 * back is the answer to it. A connection is closed rather than trusted: after an answer that was cut off, refused or
 * followed by anything, and by any byte that comes while no request is on its way.
 *
 * What a hostile receiver gains: bytes that it sends before it has read a request are taken for the answer to that
 * request, as HTTP/1.1 cannot tell them apart. They reach nobody else: a connection belongs to one origin.
 */
import type { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import type { HttpExchange } from "./HttpExchange.ts"
import { type Answering, ResponseParser } from "./ResponseParser.ts"

/** What a connection tells its pool. */
export interface Owner<Origin> {
  /** Its answer is read, and HTTP lets it carry another exchange. */
  readonly released: (connection: HttpConnection<Origin>) => void
  /** It is closed; told once, before its exchange ends. */
  readonly closed: (connection: HttpConnection<Origin>) => void
}

/** A request that a connection can carry. */
export interface Sendable<Origin> {
  readonly bytes: string | Uint8Array
  readonly exchange: HttpExchange
  connection: HttpConnection<Origin> | null
}

/** `Origin`: what its pool keeps of where it leads to; nothing here looks into it. */
export class HttpConnection<Origin> implements Answering {
  readonly #socket: Socket
  readonly #owner: Owner<Origin>
  readonly #parser = new ResponseParser(this)
  #exchange: HttpExchange | null = null
  #open = true
  readonly origin: Origin
  readonly madeAt: number
  readonly remoteAddress: string | undefined
  /** How many requests it has carried. */
  exchanges = 0
  /** Its pool lets it rest after an answer. */
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

  /** Whether the request is out of this process: an answer may come before that. */
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
    this.#parser.begin()
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

  /** The exchange ends early, and the connection with it if it is the exchange's still. */
  abandon(exchange: HttpExchange): void {
    if (this.#exchange === exchange) this.close()
  }

  /** The connection ends, and whatever is on it. */
  lose(reason: "reset" | "protocol"): void {
    const exchange = this.#exchange
    this.close()
    exchange?.lost(reason)
  }

  head(status: number): void {
    this.#exchange?.answered(status)
  }

  body(chunk: Buffer, from: number, to: number): void {
    this.#exchange?.take(chunk, from, to)
  }

  #read(chunk: Buffer): void {
    // Bytes that no request asked for.
    if (this.#exchange === null) return this.close()
    const whole = this.#parser.read(chunk)
    if (this.#parser.refused) this.lose("protocol")
    else if (this.#parser.done) this.#finished(whole)
  }

  #finished(alone: boolean): void {
    const exchange = this.#exchange
    this.#exchange = null
    if (alone && this.#parser.keep) this.#owner.released(this)
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
