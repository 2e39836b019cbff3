import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node"

/** What a handler gets. Exactly one of `ack`, `nak`, `term` counts, the first; each only writes to the socket. */
export class BusMessage {
  readonly subject: string
  readonly data: Uint8Array
  /** The position in the stream. */
  readonly seq: number
  /** How many times it was handed out, this time included. */
  readonly deliveries: number
  /** When the broker stored it, Unix milliseconds. */
  readonly storedAtMillis: number
  readonly #headers: MsgHdrs | undefined
  readonly #reply: string
  readonly #nc: NatsConnection
  #settled = false

  constructor(nc: NatsConnection, subject: string, data: Uint8Array, headers: MsgHdrs | undefined, reply: string) {
    // $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<nanos>.<pending>[.<token>]
    const parts = reply.split(".")
    const at = parts.length === 9 ? 4 : 6
    this.subject = subject
    this.data = data
    this.deliveries = Number(parts[at])
    this.seq = Number(parts[at + 1])
    this.storedAtMillis = Math.floor(Number(parts[at + 3]) / 1e6)
    this.#headers = headers
    this.#reply = reply
    this.#nc = nc
  }

  /** The first value of a header, names compared without case, or null. */
  header(name: string): string | null {
    if (this.#headers === undefined) return null
    const key = this.#headers.keys().find((key) => key.toLowerCase() === name.toLowerCase())
    return key === undefined ? null : this.#headers.get(key)
  }

  get text(): string {
    return new TextDecoder().decode(this.data)
  }

  get settled(): boolean {
    return this.#settled
  }

  /** The message is remembered elsewhere: the broker may forget it. Only after the write that remembers it. */
  ack(): void {
    this.#answer("+ACK")
  }

  /** Hand it out again, to anyone, no earlier than `delayMillis` from now (earlier after the broker's restart). */
  nak(delayMillis = 0): void {
    this.#answer(delayMillis > 0 ? `-NAK {"delay":${Math.round(delayMillis * 1e6)}}` : "-NAK")
  }

  /** Never hand it out again; its reason must stand elsewhere. */
  term(): void {
    this.#answer("+TERM")
  }

  /** Still at work: its wait begins anew. */
  working(): void {
    if (!this.#settled) this.#send("+WPI")
  }

  #answer(word: string): void {
    if (this.#settled) return
    this.#settled = true
    this.#send(word)
  }

  #send(word: string): void {
    // On a closed connection the answer is lost, and the message comes again: consumers are idempotent.
    if (!this.#nc.isClosed()) this.#nc.publish(this.#reply, word)
  }
}
