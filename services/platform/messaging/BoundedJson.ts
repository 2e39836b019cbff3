/**
 * Parses JSON from outside within bounds that are checked first: a parser that recurses into a million brackets
 * overflows its stack.
 */
import { Array, Result, type Schema, SchemaIssue } from "effect"

export interface JsonFault {
  readonly reason: "too_large" | "too_deep" | "malformed_json"
  readonly detail: string
}

export const maxBytes = 65_536
export const maxDepth = 32

/** Whether there are more than so many brackets that open, in strings or not: with fewer, none lies deep. */
const hasMany = (text: string): boolean => {
  let count = 0
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (++count > maxDepth) return true
    }
  }
  return false
}

const isDeep = (text: string): boolean => {
  if (!hasMany(text)) return false
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
const encoder = new TextEncoder()
const fault = (reason: JsonFault["reason"], detail: string) => Result.fail<JsonFault>({ reason, detail })
const tooLarge = fault("too_large", `more than ${maxBytes} bytes`)

const bounded = (text: string): Result.Result<unknown, JsonFault> => {
  if (isDeep(text)) return fault("too_deep", `more than ${maxDepth} levels`)
  try {
    return Result.succeed(JSON.parse(text) as unknown)
  } catch {
    return fault("malformed_json", "not a JSON text")
  }
}

/** Parses at most 64 KiB of UTF-8, at most 32 levels deep. The fault quotes nothing of the text. */
export const parse = (bytes: Uint8Array): Result.Result<unknown, JsonFault> => {
  if (bytes.length > maxBytes) return tooLarge
  try {
    return bounded(decoder.decode(bytes))
  } catch {
    return fault("malformed_json", "not UTF-8")
  }
}

/** The same for a text; its size counts in bytes of UTF-8. */
export const parseText = (text: string): Result.Result<unknown, JsonFault> =>
  text.length > maxBytes || encoder.encode(text).length > maxBytes ? tooLarge : bounded(text)

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Names the fields at fault, never their values; `whole` is the name of the value itself. */
export const fieldsAtFault = (error: Schema.SchemaError, whole: string): string => {
  const paths = issuesOf(error.issue).issues.map(({ path }) =>
    (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".") || whole
  )
  return `at fault: ${Array.dedupe(paths).join(", ")}`
}
