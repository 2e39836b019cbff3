/** Scalars of the wire that every contract shares. */
import { Schema } from "effect"

/** A UUID of any version and variant, in the hyphenated form; either case is taken. */
export const Uuid = Schema.String.check(Schema.isGUID({ toJsonSchema: () => ({ format: "uuid" }) }))

const hyphenated = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether a path's id can be one of ours; any other is simply not found. */
export const isUuid = (id: string): boolean => hyphenated.test(id)

/** RFC 3339 in UTC with milliseconds and `Z`, as every time of this product is written. */
export const Timestamp = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u),
).annotate({ identifier: "Timestamp", format: "date-time", description: "RFC 3339, UTC, milliseconds" })

/** Ids that arrive from outside become subject tokens, so they are held to this alphabet. */
export const ForeignId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u))
