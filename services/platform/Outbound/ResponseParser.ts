/**
 * Parses the responses of one connection, byte by byte: HTTP/1.1 as RFC 9112 requires it of a client, without the
 * leniency that it permits. A response that other parsers read differently is refused and its connection closed;
 * docs/delivery.md lists the differences from undici and node:http.
 *
 * A hostile receiver can only get its own response refused. A head has at most 16 KiB and 128 fields; chunk extensions
 * and trailers have at most another 16 KiB; only the framing fields are copied, and the first 4 KiB of a head whose
 * fields are kept: of a failed response, and of a success where they are asked for.
 */
import type { Buffer } from "node:buffer"
import { type Field, Fields } from "./ResponseFields.ts"
import { HeadText } from "./HeadText.ts"
import { ChunkExtension } from "./ChunkExtension.ts"
import { fieldText, hexDigit, token } from "./ResponseBytes.ts"

/** Receives the parts of a response. */
export interface ResponseHandler {
  /** Called once per response, never for an informational one (1xx). */
  readonly head: (status: number) => void
  /** A part of the body: bytes `from` to `to` of the chunk that was read, valid during the call. */
  readonly body: (chunk: Buffer, from: number, to: number) => void
}

/** Maximum size of a head, and of all trailers and chunk extensions of a response together. */
export const maxHeadBytes = 16 * 1024
export const maxInterimResponses = 8
/** 13 digits are 52 bits, so a length is a safe integer. */
const maxSizeDigits = 13

const State = {
  Start: 0,
  Reason: 1,
  LineFeed: 2,
  LineStart: 3,
  Name: 4,
  Blank: 5,
  Value: 6,
  HeadEnd: 7,
  Length: 8,
  UntilEnd: 9,
  Size: 10,
  Extension: 11,
  SizeEnd: 12,
  Chunk: 13,
  ChunkReturn: 14,
  ChunkEnd: 15,
  Done: 16,
  Refused: 17,
} as const

const start = "HTTP/1."
const cr = 13
const lf = 10
const space = 32
const semicolon = 59

export class ResponseParser {
  readonly #handler: ResponseHandler
  readonly #fields = new Fields()
  readonly #headText = new HeadText()
  /** The least status of a response whose fields are kept. */
  #keptFrom = 300
  readonly #extension = new ChunkExtension()
  #state: number = State.Start
  /** Number of bytes of the status line read so far. */
  #startIndex = 0
  /** The response is HTTP/1.0. */
  #isHttp10 = false
  #status = 0
  #interim = 0
  /** Bytes of the head; after the head, bytes of chunk extensions and trailers. */
  #bytes = 0
  #left = 0
  #digits = 0
  #trailers = false
  #keep = false

  constructor(handler: ResponseHandler) {
    this.#handler = handler
  }

  /** The whole response was read. */
  get done(): boolean {
    return this.#state === State.Done
  }

  get refused(): boolean {
    return this.#state === State.Refused
  }

  /** Whether HTTP lets the connection carry another exchange; known once the response is read. */
  get keep(): boolean {
    return this.#keep
  }

  /** Milliseconds for which the receiver offers to keep the connection (`Keep-Alive: timeout=`), or null. */
  get offeredMillis(): number | null {
    return this.#fields.offeredMillis
  }

  /** The value of Retry-After in the head that was read last, or null. */
  get retryAfter(): string | null {
    return this.#fields.retryAfter
  }

  /** The fields of the head that was read last, where they are kept; else null. */
  get keptFields(): Readonly<Record<string, string>> | null {
    return this.#headText.fields()
  }

  /**
   * Prepares for a response that begins with the next byte. A failure's fields are kept, those of a success only if
   * `ofSuccess`.
   */
  begin(ofSuccess = false): void {
    this.#keptFrom = ofSuccess ? 200 : 300
    this.#state = State.Start
    this.#interim = 0
    this.#keep = false
    this.#beginHead()
  }

  /** Reads a chunk; returns whether all of its bytes belong to the response. */
  read(chunk: Buffer): boolean {
    let at = 0
    while (at < chunk.length && this.#state < State.Done) {
      if (this.#state <= State.HeadEnd) {
        const next = this.#head(chunk, at)
        if (this.#status >= this.#keptFrom && !this.#trailers) this.#headText.take(chunk, at, next)
        this.#bytes += next - at
        if (this.#bytes > maxHeadBytes) this.stop()
        at = next
      } else at = this.#body(chunk, at)
    }
    return at === chunk.length
  }

  /** The receiver ended its side; returns whether that ends the response (RFC 9112, section 6.3, rule 8). */
  end(): boolean {
    if (this.#state !== State.UntilEnd) return false
    this.#state = State.Done
    return true
  }

  /** Refuses all further bytes. */
  stop(): void {
    this.#state = State.Refused
  }

  #refuse(at: number): number {
    this.#state = State.Refused
    return at + 1
  }

  #beginHead(): void {
    this.#fields.begin()
    this.#headText.begin()
    this.#status = 0
    this.#startIndex = 0
    this.#bytes = 0
    this.#trailers = false
  }

  #head(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case State.Start:
        return this.#startByte(chunk[at]!) ? at + 1 : this.#refuse(at)
      case State.Reason:
        while (at < chunk.length && fieldText[chunk[at]!] === 1) at++
        return at === chunk.length ? at : this.#lineReturn(chunk, at)
      case State.LineFeed:
        if (chunk[at] !== lf) return this.#refuse(at)
        this.#state = State.LineStart
        return at + 1
      case State.LineStart:
        this.#state = chunk[at] === cr ? State.HeadEnd : State.Name
        if (this.#state === State.HeadEnd) return at + 1
        this.#fields.beginName()
        return at
      case State.Name:
        return this.#name(chunk, at)
      case State.Blank:
        while (at < chunk.length && (chunk[at] === space || chunk[at] === 9)) at++
        if (at < chunk.length) this.#state = State.Value
        return at
      case State.Value:
        return this.#value(chunk, at)
      default:
        if (chunk[at] !== lf || this.#bytes >= maxHeadBytes) return this.#refuse(at)
        this.#headEnds()
        return at + 1
    }
  }

  /** `HTTP/1.1 200` and a space (RFC 9112, section 4); the reason, and with it the space, may be missing. */
  #startByte(byte: number): boolean {
    const index = this.#startIndex++
    if (index < 7) return byte === start.charCodeAt(index)
    if (index === 7) {
      this.#isHttp10 = byte === 48
      this.#status = 0
      return byte === 48 || byte === 49
    }
    if (index === 8) return byte === space
    if (index < 12) {
      this.#status = this.#status * 10 + byte - 48
      return byte >= (index === 9 ? 49 : 48) && byte <= 57
    }
    this.#state = byte === cr ? State.LineFeed : State.Reason
    return byte === cr || byte === space
  }

  #lineReturn(chunk: Buffer, at: number): number {
    if (chunk[at] !== cr) return this.#refuse(at)
    this.#state = State.LineFeed
    return at + 1
  }

  /** Reads a field's name. Refuses a line that begins with a blank (obs-fold, section 5.2): no token has a blank. */
  #name(chunk: Buffer, at: number): number {
    const fields = this.#fields
    for (; at < chunk.length; at++) {
      const byte = token[chunk[at]!]!
      if (byte === 0) break
      fields.nameByte(byte)
    }
    if (at === chunk.length) return at
    if (chunk[at] !== 58 || !fields.beginValue()) return this.#refuse(at)
    this.#state = State.Blank
    return at + 1
  }

  #value(chunk: Buffer, at: number): number {
    const fields = this.#fields
    if (!fields.wanted) { while (at < chunk.length && fieldText[chunk[at]!] === 1) at++ }
    else {
      for (; at < chunk.length && fieldText[chunk[at]!] === 1; at++) {
        if (!fields.valueByte(chunk[at]!)) return this.#refuse(at)
      }
    }
    if (at === chunk.length) return at
    return fields.endValue(this.#trailers) ? this.#lineReturn(chunk, at) : this.#refuse(at)
  }

  /** Decides what follows the head (RFC 9112, section 6.3). */
  #headEnds(): void {
    const fields: Field = this.#fields
    const status = this.#status
    const framed = fields.chunked || fields.length >= 0
    this.#keep = !this.#isHttp10 && !fields.close
    if (this.#trailers) this.#state = State.Done
    // No request asks for another protocol (101). An informational response has no body, and HTTP/1.0 has none of them.
    else if (status < 200) {
      if (status === 101 || framed || this.#isHttp10 || ++this.#interim > maxInterimResponses) return this.stop()
      this.#beginHead()
      this.#state = State.Start
    } else if (fields.chunked && (fields.length >= 0 || this.#isHttp10)) this.stop()
    else {
      this.#bytes = 0
      this.#left = fields.length
      this.#digits = 0
      const empty = status === 204 || status === 304
      // The receiver may send a body although this status has none; so the connection is not kept.
      if (empty && (fields.chunked || fields.length > 0)) this.#keep = false
      if (empty || fields.length === 0) this.#state = State.Done
      else this.#state = fields.chunked ? State.Size : fields.length > 0 ? State.Length : State.UntilEnd
      if (this.#state === State.UntilEnd) this.#keep = false
      this.#handler.head(status)
    }
  }

  #body(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case State.Length:
      case State.Chunk: {
        const to = Math.min(chunk.length, at + this.#left)
        this.#left -= to - at
        if (this.#left === 0) this.#state = this.#state === State.Length ? State.Done : State.ChunkReturn
        this.#handler.body(chunk, at, to)
        return to
      }
      case State.UntilEnd:
        this.#handler.body(chunk, at, chunk.length)
        return chunk.length
      case State.Size:
        return this.#size(chunk, at)
      case State.Extension: {
        const next = this.#extension.read(chunk[at]!)
        if (next === "refused" || ++this.#bytes > maxHeadBytes) return this.#refuse(at)
        if (next === "over") this.#state = State.SizeEnd
        return at + 1
      }
      case State.SizeEnd:
        if (chunk[at] !== lf) return this.#refuse(at)
        this.#trailers = this.#left === 0
        this.#state = this.#trailers ? State.LineStart : State.Chunk
        return at + 1
      case State.ChunkReturn:
        if (chunk[at] !== cr) return this.#refuse(at)
        this.#state = State.ChunkEnd
        return at + 1
      default:
        if (chunk[at] !== lf) return this.#refuse(at)
        this.#left = 0
        this.#digits = 0
        this.#state = State.Size
        return at + 1
    }
  }

  #size(chunk: Buffer, at: number): number {
    if (this.#digits === 0) this.#left = 0
    for (; at < chunk.length; at++) {
      const digit = hexDigit[chunk[at]!]!
      if (digit > 15) break
      if (++this.#digits > maxSizeDigits) return this.#refuse(at)
      this.#left = this.#left * 16 + digit
    }
    if (at === chunk.length) return at
    const byte = chunk[at]!
    if (this.#digits === 0 || (byte !== cr && byte !== semicolon)) return this.#refuse(at)
    this.#state = byte === cr ? State.SizeEnd : State.Extension
    this.#extension.begin()
    return at + 1
  }
}
