/**
 * Reads one line of the directory. Nothing of it reaches PostgreSQL before it is bounded here: size, depth, alphabet of
 * ids, control characters, times. A rejection names the fields at fault and never repeats a value.
 */
import { Array, Result, Schema, SchemaIssue } from "effect"
import { DirectoryEnvelope } from "../../schemas/bus/Directory.ts"
import { FeedId } from "../../schemas/mail/Directory.ts"
import type { Kind } from "./Kind.ts"

/** A line that may be applied. `fields` is null for a removal. */
export interface Line {
  readonly kind: Kind
  readonly id: string
  readonly version: number
  readonly fields: Readonly<Record<string, unknown>> | null
}

export type Reason =
  | "too_large"
  | "too_deep"
  | "malformed_json"
  | "invalid_line"
  | "unknown_kind"
  | "wrong_kind"
  | "refused"

export interface Rejection {
  readonly reason: Reason
  readonly detail: string
}

/** Bytes of UTF-8 that a line may have. */
export const maxLineBytes = 65_536
const maxDepth = 32

const isId = Schema.is(FeedId)
const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()
const envelope = Schema.decodeUnknownResult(DirectoryEnvelope, { errors: "all" })

// Counted before parsing: a parser that recurses into a million brackets overflows its stack.
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

const faults = (error: Schema.SchemaError): Rejection => {
  const paths = formatIssue(error.issue).issues.map(({ path }) =>
    (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".") || "the line"
  )
  return { reason: "invalid_line", detail: `at fault: ${Array.dedupe(paths).join(", ")}` }
}

const parse = (text: string): Result.Result<unknown, Rejection> =>
  Result.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => ({ reason: "malformed_json", detail: "not a JSON text" }),
  })

// Ids are compared by PostgreSQL as UUIDs and by us as text: one form for both.
const lowered = (kind: Kind, fields: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      kind.columns[name] === "uuid" && typeof value === "string" ? value.toLowerCase() : value,
    ]),
  )

/** A reader of lines of these kinds; `expected` is the kind that the line has to be of, where one is. */
export const reader = (kinds: ReadonlyMap<string, Kind>) => {
  const decoders = new Map(
    Array.fromIterable(kinds).map(([name, { fields }]) =>
      [name, Schema.decodeUnknownResult(fields, { errors: "all" })] as const
    ),
  )
  return (text: string, expected?: string): Result.Result<Line, Rejection> =>
    Result.gen(function* () {
      if (text.length > maxLineBytes || new TextEncoder().encode(text).length > maxLineBytes) {
        return yield* Result.fail<Rejection>({ reason: "too_large", detail: `more than ${maxLineBytes} bytes` })
      }
      if (isDeep(text)) {
        return yield* Result.fail<Rejection>({ reason: "too_deep", detail: `more than ${maxDepth} levels` })
      }
      const value = yield* parse(text)
      const line = yield* Result.mapError(envelope(value), faults)
      if (expected !== undefined && line.kind !== expected) {
        return yield* Result.fail<Rejection>({ reason: "wrong_kind", detail: `kind ${line.kind} as ${expected}` })
      }
      const kind = kinds.get(line.kind)
      if (kind === undefined) {
        return yield* Result.fail<Rejection>({ reason: "unknown_kind", detail: `kind ${line.kind}` })
      }
      if (!isId(line.id)) return yield* Result.fail<Rejection>({ reason: "invalid_line", detail: "at fault: id" })
      const head = { kind, id: line.id.toLowerCase(), version: line.version }
      if (line.removed === true) return { ...head, fields: null }
      const fields = yield* Result.mapError(decoders.get(line.kind)!(value), faults)
      return { ...head, fields: lowered(kind, fields) }
    })
}
