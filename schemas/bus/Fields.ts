/**
 * Scalars of the directory's lines. Text is bounded and without control characters, since it ends in subjects, headers
 * and terminals; times lie between 2000 and 2199.
 */
import { Schema } from "effect"

// Otherwise a day that its month does not have would count as a day of the next month.
const isRealDay = Schema.makeFilter((text: string) => {
  const [year, month, day] = text.slice(0, 10).split("-").map(Number)
  return new Date(Date.UTC(year!, month! - 1, day)).getUTCDate() === day
})

/** RFC 3339 with any offset. */
export const FeedTime = Schema.String.check(
  Schema.isPattern(
    /^2[01]\d{2}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/,
  ),
  isRealDay,
)

/** One line of text of 1 to `max` code points. */
export const text = (max: number) =>
  Schema.String.check(
    Schema.isPattern(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u),
    Schema.isMaxCodePoints(max),
  )

/** A field that may be null or absent. */
export const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** Text in the form of a mail address; whether mail reaches it is not checked. */
export const address = Schema.String.check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/u),
  Schema.isPattern(/^[^\p{Cc}\p{Cs}]*$/u),
  Schema.isMaxCodePoints(320),
)

export const hostname = Schema.String.check(Schema.isPattern(/^[^\s@/\p{Cc}\p{Cs}]{1,253}$/u))
