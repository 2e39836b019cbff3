/**
 * Reads UUIDs as pydantic does, and writes the message of Rust's uuid crate (`InvalidUuid::into_err`) for a string that
 * is none.
 */
import type { Complaint } from "./Fault.ts"

const starts = [0, 9, 14, 19, 24, 37]
const sizes = [8, 4, 4, 4, 12]

const unwrapped = (text: string): readonly [body: string, offset: number, simple: boolean] => {
  if (text.startsWith("{") && text.endsWith("}") && text.length > 1) return [text.slice(1, -1), 1, false]
  if (text.startsWith("urn:uuid:")) return [text.slice(9), 9, false]
  return [text, 0, true]
}

const byteLength = (text: string) => new TextEncoder().encode(text).length

const sentence = (text: string): string => {
  const [body, offset, simple] = unwrapped(text)
  const bounds: Array<number> = []
  let hyphens = 0
  let index = 0
  for (const character of body) {
    if (character === "-") {
      if (hyphens < 4) bounds.push(index)
      hyphens++
    } else if (!/^[0-9a-fA-F]$/.test(character)) {
      return `invalid character: found \`${character}\` at ${index + offset + 1}`
    }
    index += byteLength(character)
  }
  if (hyphens === 0 && simple) {
    return `invalid length: expected length 32 for simple format, found ${byteLength(text)}`
  }
  if (hyphens !== 4) return `invalid group count: expected 5, found ${hyphens + 1}`
  const group = bounds.findIndex((bound, i) => bound !== starts[i + 1]! - 1)
  const wrong = group < 0 ? 4 : group
  const length = wrong === 4 ? byteLength(text) - starts[4]! : bounds[wrong]! - starts[wrong]!
  return `invalid group length in group ${wrong}: expected ${sizes[wrong]}, found ${length}`
}

export const uuidParsing = (text: string): Complaint => {
  const error = sentence(text)
  return { type: "uuid_parsing", msg: `Input should be a valid UUID, ${error}`, ctx: { error } }
}

const digits = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i
const hyphenated = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The hyphenated form, in lower case, of a text that pydantic reads as a UUID; undefined for any other. */
export const readUuid = (text: string): string | undefined => {
  const parts = digits.exec(text)?.slice(1)
  const found = parts === undefined ? unwrapped(text)[0] : parts.join("-")
  return hyphenated.test(found) ? found.toLowerCase() : undefined
}

export const uuidType: Complaint = {
  type: "uuid_type",
  msg: "UUID input should be a string, bytes or UUID object",
}
