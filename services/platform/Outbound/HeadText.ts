/**
 * The fields of a response, for people to read. The parser passes the bytes of the head, whose form it has
 * checked, from the end of the status code on. The first 4 KiB are kept, and of these whole lines.
 */
import { Buffer } from "node:buffer"

const maxBytes = 4 * 1024

/**
 * Fields whose values are credentials, or may repeat those or the signatures of the request. Not `WWW-Authenticate`,
 * which says what the receiver asks for, nor `Author`.
 */
const secret = /auth(?!enticate$|ors?$)|cookie|api-?key|token|secret|password|session|signature|credential|jwt/u

/** Shown in place of a credential. */
export const masked = "…"

export class HeadText {
  /** Made with the first response of the connection whose fields are kept. */
  #bytes: Buffer | null = null
  #size = 0

  /** Begins a head. */
  begin(): void {
    this.#size = 0
  }

  /** Takes the bytes `from` to `to` of the chunk. */
  take(chunk: Buffer, from: number, to: number): void {
    if (this.#size === maxBytes) return
    this.#bytes ??= Buffer.alloc(maxBytes)
    this.#size += chunk.copy(this.#bytes, this.#size, from, to)
  }

  /** The fields by their names in lower case, repeated ones as one (RFC 9110, section 5.3); null where there is no head. */
  fields(): Readonly<Record<string, string>> | null {
    if (this.#bytes === null || this.#size === 0) return null
    const [_reason, ...lines] = this.#bytes.toString("latin1", 0, this.#size).split("\r\n")
    // The last line is cut off, or is the empty line that ends the head.
    lines.pop()
    const fields = new Map<string, string>()
    for (const line of lines) {
      const colon = line.indexOf(":")
      if (colon < 1) continue
      const name = line.slice(0, colon).toLowerCase()
      const value = secret.test(name) ? masked : line.slice(colon + 1).trim()
      const known = fields.get(name)
      fields.set(name, known === undefined || value === masked ? value : `${known}, ${value}`)
    }
    return Object.fromEntries(fields)
  }
}
