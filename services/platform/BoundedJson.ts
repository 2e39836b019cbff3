/**
 * JSON from outside, bounded before it is parsed: a parser that recurses into a million brackets overflows its stack, and
 * PostgreSQL's text holds no U+0000.
 */
import { Result } from "effect"

export interface JsonFault {
  readonly reason: "too_large" | "too_deep" | "malformed_json"
  readonly detail: string
}

export const maxBytes = 65_536
export const maxDepth = 32

const isDeep = (text: string): boolean => {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (quoted) {
      if (c === 0x5c) i++
      else if (c === 0x22) quoted = false
    } else if (c === 0x22) quoted = true
    else if (c === 0x5b || c === 0x7b) {
      if (++depth > maxDepth) return true
    } else if (c === 0x5d || c === 0x7d) depth--
  }
  return false
}

const decoder = new TextDecoder("utf-8", { fatal: true })

/** Parses at most 64 KiB of UTF-8, at most 32 levels deep. The fault repeats nothing of the text. */
export const parse = (bytes: Uint8Array): Result.Result<unknown, JsonFault> => {
  if (bytes.length > maxBytes) return Result.fail({ reason: "too_large", detail: `more than ${maxBytes} bytes` })
  try {
    const text = decoder.decode(bytes)
    if (isDeep(text)) return Result.fail({ reason: "too_deep", detail: `more than ${maxDepth} levels` })
    return Result.succeed(JSON.parse(text) as unknown)
  } catch {
    return Result.fail({ reason: "malformed_json", detail: "not JSON in UTF-8" })
  }
}
