/**
 * Reads one line of the directory. Everything is bounded here before it reaches PostgreSQL: size, depth, alphabet of
 * ids, control characters, times. A rejection names the fields at fault and never repeats a value.
 */
import { Array, Result, Schema } from "effect"
import { DirectoryEnvelope } from "../../schemas/bus/DirectoryMessages.ts"
import { FeedId } from "../../schemas/mail/MailDirectory.ts"
import { ForeignId } from "../../schemas/Wire.ts"
import { fieldsAtFault, parseText } from "../platform/messaging/BoundedJson.ts"
import type { DirectoryRow, Kind } from "./Kind.ts"

/** A line that may be applied. */
export interface Line extends DirectoryRow {
  readonly kind: Kind
  readonly version: number
}

export type Reason =
  | "too_large"
  | "too_deep"
  | "malformed_json"
  | "invalid_line"
  | "unknown_kind"
  | "wrong_kind"
  | "refused"
  | "not_followed"

export interface Rejection {
  readonly reason: Reason
  readonly detail: string
}

const isId = { uuid: Schema.is(FeedId), text: Schema.is(ForeignId) }
const envelope = Schema.decodeUnknownResult(DirectoryEnvelope, { errors: "all" })

const faults = (error: Schema.SchemaError): Rejection => ({
  reason: "invalid_line",
  detail: fieldsAtFault(error, "the line"),
})

// PostgreSQL compares ids as UUIDs, this program as text, so all are in lower case.
const lowered = (kind: Kind, fields: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      kind.columns[name] === "uuid" && typeof value === "string" ? value.toLowerCase() : value,
    ]),
  )

/** Makes a reader of lines of these kinds; `expected`, where given, is the kind that the line must have. */
export const reader = (kinds: ReadonlyMap<string, Kind>) => {
  const decoders = new Map(
    Array.fromIterable(kinds).map(([name, { fields }]) =>
      [name, Schema.decodeUnknownResult(fields, { errors: "all" })] as const
    ),
  )
  return (text: string, expected?: string): Result.Result<Line, Rejection> =>
    Result.gen(function* () {
      const value = yield* parseText(text)
      const line = yield* Result.mapError(envelope(value), faults)
      if (expected !== undefined && line.kind !== expected) {
        return yield* Result.fail<Rejection>({ reason: "wrong_kind", detail: `kind ${line.kind} as ${expected}` })
      }
      const kind = kinds.get(line.kind)
      if (kind === undefined) {
        return yield* Result.fail<Rejection>({ reason: "unknown_kind", detail: `kind ${line.kind}` })
      }
      if (!isId[kind.ids](line.id)) {
        return yield* Result.fail<Rejection>({ reason: "invalid_line", detail: "at fault: id" })
      }
      const head = { kind, id: kind.ids === "uuid" ? line.id.toLowerCase() : line.id, version: line.version }
      if (line.removed === true) {
        return { ...head, fields: null }
      }
      const fields = yield* Result.mapError(decoders.get(line.kind)!(value), faults)
      return { ...head, fields: lowered(kind, fields) }
    })
}
