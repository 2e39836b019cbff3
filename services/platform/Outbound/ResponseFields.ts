/**
 * The fields of a head that frame an answer or speak of its connection: Content-Length, Transfer-Encoding, Connection,
 * Keep-Alive. The others are checked by the parser and forgotten.
 *
 * What a hostile receiver gains: 256 bytes of a value are looked at, for as long as its connection stands.
 */
import { Buffer } from "node:buffer"

const maxFields = 128
const maxValueBytes = 256

const Kind = { Other: 0, ContentLength: 1, TransferEncoding: 2, Connection: 3, KeepAlive: 4 } as const

/** Each name has a length of its own or, of the two of ten letters, a first letter. */
const names = ["", "content-length", "transfer-encoding", "connection", "keep-alive"].map((name) => Buffer.from(name))
const longestName = 17

export interface Field {
  /** -1 where the head has no Content-Length. */
  readonly length: number
  readonly chunked: boolean
  /** The receiver closes the connection after the answer. */
  readonly close: boolean
}

export class Fields implements Field {
  length = -1
  chunked = false
  close = false
  offeredMillis: number | null = null
  #count = 0
  #kind: number = Kind.Other
  readonly #name = new Uint8Array(longestName)
  #nameBytes = 0
  readonly #value = Buffer.alloc(maxValueBytes)
  #valueBytes = 0

  /** A head begins. */
  begin(): void {
    this.length = -1
    this.chunked = false
    this.close = false
    this.offeredMillis = null
    this.#count = 0
  }

  beginName(): void {
    this.#nameBytes = 0
  }

  /** A byte of the name, in lower case. */
  nameByte(byte: number): void {
    if (this.#nameBytes < longestName) this.#name[this.#nameBytes] = byte
    this.#nameBytes++
  }

  /** The name is over; gives whether a field of that name may be. */
  beginValue(): boolean {
    this.#valueBytes = 0
    this.#kind = this.#kindOfName()
    return this.#nameBytes > 0 && ++this.#count <= maxFields
  }

  /** The value's bytes are asked for. */
  get wanted(): boolean {
    return this.#kind !== Kind.Other
  }

  valueByte(byte: number): boolean {
    if (this.#valueBytes === maxValueBytes) return false
    this.#value[this.#valueBytes++] = byte
    return true
  }

  /** The value is over; gives whether the answer may have this field. A trailer that frames is refused (RFC 9110, 6.5.1). */
  endValue(trailer: boolean): boolean {
    switch (this.#kind) {
      case Kind.ContentLength:
        // A second one is refused also where it says the same (RFC 9110, section 8.6, leaves the choice).
        if (trailer || this.length >= 0) return false
        this.length = this.#digits()
        return this.length >= 0
      case Kind.TransferEncoding:
        if (trailer || this.chunked) return false
        // The whole value, blanks behind it included: other readers see no chunks behind `chunked` and a tab.
        return this.chunked = this.#text().toLowerCase() === "chunked"
      case Kind.Connection:
        if (!trailer && /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i.test(this.#text())) this.close = true
        return true
      case Kind.KeepAlive: {
        const seconds = trailer ? undefined : /timeout=(\d{1,6})(?!\d)/i.exec(this.#text())?.[1]
        if (seconds !== undefined) this.offeredMillis = Number(seconds) * 1_000
        return true
      }
      default:
        return true
    }
  }

  #kindOfName(): number {
    const count = this.#nameBytes
    if (count !== 10 && count !== 14 && count !== 17) return Kind.Other
    const kind = count === 14
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

  /** The value with the blanks behind it. */
  #text(): string {
    return this.#value.toString("latin1", 0, this.#valueBytes)
  }

  /** `1*DIGIT` as a number, -1 for any other text. */
  #digits(): number {
    const text = this.#text()
    return /^\d{1,15}$/.test(text) ? Number(text) : -1
  }
}
