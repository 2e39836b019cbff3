/** Scalars of the wire that every contract shares. */
import { Schema } from "effect"
import { complains } from "./Validation/Fault.ts"

/** A UUID of any version and variant, in the hyphenated form; either case is taken. */
export const Uuid = Schema.String.check(Schema.isGUID({ toJsonSchema: () => ({ format: "uuid" }) }))

/** An id that this program made, in paths, bodies and answers. Any other text is accepted and simply not found. */
export const Id = Schema.String.annotate({ format: "uuid" })

const hyphenated = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether a path's id can be one of ours; any other is simply not found. */
export const isUuid = (id: string): boolean => hyphenated.test(id)

/** An id as the database spells it. */
export const lowerCased = <Id extends string>(id: Id): Id => id.toLowerCase() as Id

/** RFC 3339 in UTC with milliseconds and `Z`: every time that this program writes. */
export const Timestamp = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u),
).annotate({ identifier: "Timestamp", format: "date-time", description: "RFC 3339, UTC, milliseconds" })

const time =
  /^(\d{4})-(0[1-9]|1[0-2])-(\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

// Date.parse reads a day that its month does not have as a day of the next month.
const isTime = (text: string): boolean => {
  const [, year, month, day] = time.exec(text)?.map(Number) ?? []
  return day !== undefined && day > 0 && new Date(Date.UTC(year!, month! - 1, day)).getUTCDate() === day
}

/** A time in a request: RFC 3339 with any offset. `Date.parse` reads it once it is in upper case. */
export const AskedTime = Schema.String.check(
  Schema.makeFilter<string>(isTime, {
    expected: "a date and time of RFC 3339",
    toJsonSchema: () => [{}, true],
    ...complains({ type: "datetime_parsing", msg: "Input should be a valid datetime" }),
  }),
).annotate({ format: "date-time" })

/** An id of another system. It becomes a token of a subject, and so is held to this alphabet. */
export const ForeignId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u))
