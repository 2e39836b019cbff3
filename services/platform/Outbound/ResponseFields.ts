/**
 * The fields of a head that frame a response or control its connection: Content-Length, Transfer-Encoding, Connection,
 * Keep-Alive; and Retry-After, for the caller. The parser checks all other fields and keeps nothing of them.
 *
 * At most 256 bytes of a value are stored, in a buffer that lives as long as the connection.
 */
import { Buffer } from "node:buffer"

const maxFields = 128
const maxValueBytes = 256

const Kind = { Other: 0, ContentLength: 1, TransferEncoding: 2, Connection: 3, KeepAlive: 4, RetryAfter: 5 } as const

/** Length and first letter together identify each name. */
const names = ["", "content-length", "transfer-encoding", "connection", "keep-alive", "retry-after"].map((name) =>
  Buffer.from(name)
)
const longestName = 17

export interface Field {
  /** -1 where the head has no Content-Length. */
  readonly length: number
  readonly chunked: boolean
  /** The receiver closes the connection after the response. */
  readonly close: boolean
}

export class Fields implements Field {
  length = -1
  chunked = false
  close = false
  offeredMillis: number | null = null
  /** The value of the last Retry-After; null where there is none, or a longer one than is stored. */
  retryAfter: string | null = null
  #count = 0
  #kind: number = Kind.Other
  readonly #name = new Uint8Array(longestName)
  #nameBytes = 0
  readonly #value = Buffer.alloc(maxValueBytes)
  #valueBytes = 0

  /** Begins a head. */
  begin(): void {
    this.length = -1
    this.chunked = false
    this.close = false
    this.offeredMillis = null
    this.retryAfter = null
    this.#count = 0
  }

  beginName(): void {
    this.#nameBytes = 0
  }

  /** Takes a byte of the name, in lower case. */
  nameByte(byte: number): void {
    if (this.#nameBytes < longestName) this.#name[this.#nameBytes] = byte
    this.#nameBytes++
  }

  /** Ends the name; returns false for an empty name or too many fields. */
  beginValue(): boolean {
    this.#valueBytes = 0
    this.#kind = this.#kindOfName()
    return this.#nameBytes > 0 && ++this.#count <= maxFields
  }

  /** Whether the parser must pass the bytes of this value. */
  get wanted(): boolean {
    return this.#kind !== Kind.Other
  }

  /** Takes a byte of the value; returns false when a value that controls the connection is too long. */
  valueByte(byte: number): boolean {
    if (this.#valueBytes === maxValueBytes) return this.#kind === Kind.RetryAfter
    this.#value[this.#valueBytes++] = byte
    return true
  }

  /** Ends the value; returns whether the field is accepted: framing fields in trailers are not (RFC 9110, 6.5.1). */
  endValue(trailer: boolean): boolean {
    switch (this.#kind) {
      case Kind.ContentLength:
        // A second Content-Length is refused even if it is the same (RFC 9110, section 8.6, leaves the choice).
        if (trailer || this.length >= 0) return false
        this.length = this.#digits()
        return this.length >= 0
      case Kind.TransferEncoding:
        if (trailer || this.chunked) return false
        // Compares the whole value, with trailing blanks: other parsers do not read `chunked` and a tab as chunked.
        return this.chunked = this.#text().toLowerCase() === "chunked"
      case Kind.Connection:
        if (!trailer && /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i.test(this.#text())) this.close = true
        return true
      case Kind.KeepAlive: {
        const seconds = trailer ? undefined : /timeout=(\d{1,6})(?!\d)/i.exec(this.#text())?.[1]
        if (seconds !== undefined) this.offeredMillis = Number(seconds) * 1_000
        return true
      }
      case Kind.RetryAfter:
        if (!trailer) this.retryAfter = this.#valueBytes < maxValueBytes ? this.#text() : null
        return true
      default:
        return true
    }
  }

  #kindOfName(): number {
    const count = this.#nameBytes
    if (count !== 10 && count !== 11 && count !== 14 && count !== 17) return Kind.Other
    const kind = count === 11
      ? Kind.RetryAfter
      : count === 14
      ? Kind.ContentLength
      : count === 17
      ? Kind.TransferEncoding
      : this.#name[0] === 99
      ? Kind.Connection
      : Kind.KeepAlive
    const name = names[kind]!
    for (let n = 0; n < count; n++) if (this.#name[n] !== name[n]) return Kind.Other
    return kind
  }

  /** The value with its trailing blanks. */
  #text(): string {
    return this.#value.toString("latin1", 0, this.#valueBytes)
  }

  /** `1*DIGIT` as a number, -1 for any other text. */
  #digits(): number {
    const text = this.#text()
    return /^\d{1,15}$/.test(text) ? Number(text) : -1
  }
}
