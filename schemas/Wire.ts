/** Scalars of the wire that every contract shares. */
import { Schema } from "effect"
import { complains } from "./Validation/Fault.ts"

/** A UUID of any version and variant, in the hyphenated form; either case is taken. */
export const Uuid = Schema.String.check(Schema.isGUID({ toJsonSchema: () => ({ format: "uuid" }) }))

/** An id that we gave out, in paths, bodies and answers. Any other text is taken, too, and is simply not found. */
export const Id = Schema.String.annotate({ format: "uuid" })

const hyphenated = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether a path's id can be one of ours; any other is simply not found. */
export const isUuid = (id: string): boolean => hyphenated.test(id)

/** RFC 3339 in UTC with milliseconds and `Z`, as every time of this product is written. */
export const Timestamp = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u),
).annotate({ identifier: "Timestamp", format: "date-time", description: "RFC 3339, UTC, milliseconds" })

const time =
  /^(\d{4})-(0[1-9]|1[0-2])-(\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

// Date.parse takes a day that its month does not have for one of the next month.
const isTime = (text: string): boolean => {
  const [, year, month, day] = time.exec(text)?.map(Number) ?? []
  return day !== undefined && day > 0 && new Date(Date.UTC(year!, month! - 1, day)).getUTCDate() === day
}

/** A time that is asked for: RFC 3339 with any offset. In upper case, `Date.parse` reads it. */
export const AskedTime = Schema.String.check(
  Schema.makeFilter<string>(isTime, {
    expected: "a date and time of RFC 3339",
    toJsonSchema: () => [{}, true],
    ...complains({ type: "datetime_parsing", msg: "Input should be a valid datetime" }),
  }),
).annotate({ format: "date-time" })

/** Ids that arrive from outside become subject tokens, so they are held to this alphabet. */
export const ForeignId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u))
