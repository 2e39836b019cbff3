import type { Msg, NatsConnection } from "@nats-io/transport-node"

const encoder = new TextEncoder()
/** The answer to nearly every message, encoded once. */
const acknowledgement = encoder.encode("+ACK")

/**
 * A message that a handler gets. Only the first call of `ack`, `nak` or `term` counts; each only writes to the socket.
 * Headers and the broker's figures are parsed only when they are read, which the handling of a valid event never does.
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

  /** Acknowledges the message. Only after the commit of the write that stores it. */
  ack(): void {
    this.#answer(acknowledgement)
  }

  /** Has the message handed out again, to any process, after `delayMillis` (earlier where the broker restarts). */
  nak(delayMillis = 0): void {
    this.#answer(delayMillis > 0 ? `-NAK {"delay":${Math.round(delayMillis * 1e6)}}` : "-NAK")
  }

  /** Ends the message without an acknowledgement; the reason must be recorded elsewhere. */
  term(): void {
    this.#answer("+TERM")
  }

  /** Tells the broker that the work goes on: the ack wait begins anew. */
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
    // On a closed connection the answer is lost, and the message is handed out again: consumers are idempotent.
    if (!this.#nc.isClosed()) this.#nc.publish(this.#message.reply ?? "", word)
  }
}
