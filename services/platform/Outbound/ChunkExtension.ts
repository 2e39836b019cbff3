/**
 * Reads the extensions after a chunk's size (RFC 9112, section 7.1.1): `;name`, `;name=value`, `;name="quoted"`. Only
 * their end matters: a parser that finds another end sees other chunks. Blanks around their parts are refused.
 *
 * Nothing of an extension is kept, and its bytes count against the response's limit of 16 KiB.
 */
import { fieldText, quotedText, token } from "./ResponseBytes.ts"

const Part = { Name: 0, Value: 1, Quoted: 2, Escaped: 3, Over: 4 } as const

const cr = 13
const quote = 34
const semicolon = 59
const equals = 61
const backslash = 92

export class ChunkExtension {
  #part: number = Part.Name
  /** The current part has at least one byte. */
  #begun = false

  /** Begins an extension: its semicolon was read. */
  begin(): void {
    this.#part = Part.Name
    this.#begun = false
  }

  /** Takes the next byte. `over`: it was the CR that ends the line. */
  read(byte: number): "more" | "over" | "refused" {
    switch (this.#part) {
      case Part.Escaped:
        this.#part = Part.Quoted
        return fieldText[byte] === 1 ? "more" : "refused"
      case Part.Quoted:
        if (byte === quote) this.#part = Part.Over
        else if (byte === backslash) this.#part = Part.Escaped
        else if (quotedText[byte] === 0) return "refused"
        return "more"
      case Part.Over:
        return this.#end(byte)
      default:
        return this.#tokenByte(byte)
    }
  }

  #tokenByte(byte: number): "more" | "over" | "refused" {
    if (token[byte] !== 0) {
      this.#begun = true
      return "more"
    }
    if (byte === quote && this.#part === Part.Value && !this.#begun) {
      this.#part = Part.Quoted
      return "more"
    }
    if (!this.#begun) return "refused"
    if (byte !== equals || this.#part !== Part.Name) return this.#end(byte)
    this.#part = Part.Value
    this.#begun = false
    return "more"
  }

  #end(byte: number): "more" | "over" | "refused" {
    if (byte === cr) return "over"
    if (byte !== semicolon) return "refused"
    this.begin()
    return "more"
  }
}
