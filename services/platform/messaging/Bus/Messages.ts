import type { Msg, NatsConnection } from "@nats-io/transport-node"

const encoder = new TextEncoder()
/** Nearly every message is answered so. */
const acknowledgement = encoder.encode("+ACK")

/**
 * What a handler gets. Exactly one of `ack`, `nak`, `term` counts, the first; each only writes to the socket. Headers and
 * the broker's figures are read when they are asked for: of an event in good order nobody does.
 */
export class BusMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly #message: Msg
  readonly #nc: NatsConnection
  #settled = false

  constructor(nc: NatsConnection, message: Msg) {
    this.subject = message.subject
    this.data = message.data
    this.#message = message
    this.#nc = nc
  }

  /** How many times it was handed out, this time included. */
  get deliveries(): number {
    return this.#figure(0)
  }

  /** The position in the stream. */
  get seq(): number {
    return this.#figure(1)
  }

  /** When the broker stored it, Unix milliseconds. */
  get storedAtMillis(): number {
    return Math.floor(this.#figure(3) / 1e6)
  }

  /** The first value of a header, names compared without case, or null. */
  header(name: string): string | null {
    const { headers } = this.#message
    const key = headers?.keys().find((key) => key.toLowerCase() === name.toLowerCase())
    return headers === undefined || key === undefined ? null : headers.get(key)
  }

  get text(): string {
    return new TextDecoder().decode(this.data)
  }

  get settled(): boolean {
    return this.#settled
  }

  /** The message is remembered elsewhere: the broker may forget it. Only after the write that remembers it. */
  ack(): void {
    this.#answer(acknowledgement)
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

  /** $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<nanos>.<pending>[.<token>] */
  #figure(index: number): number {
    const parts = (this.#message.reply ?? "").split(".")
    return Number(parts[(parts.length === 9 ? 4 : 6) + index])
  }

  #answer(word: string | Uint8Array): void {
    if (this.#settled) return
    this.#settled = true
    this.#send(word)
  }

  #send(word: string | Uint8Array): void {
    // On a closed connection the answer is lost, and the message comes again: consumers are idempotent.
    if (!this.#nc.isClosed()) this.#nc.publish(this.#message.reply ?? "", word)
  }
}
