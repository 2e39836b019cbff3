/** Reads `Retry-After` of a receiver's answer (RFC 9110, section 10.2.3). Pure. */

/** The longest wait that a receiver may ask for, in milliseconds. */
export const maxRetryAfter = 24 * 60 * 60_000

const day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
const longDay = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
const time = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"

/** The three forms of a date (section 5.6.7); the last one names no zone, and is in UTC as the others are. */
const withZone = new RegExp(
  `^(?:${day}, [0-3][0-9] ${month} [0-9]{4}|${longDay}, [0-3][0-9]-${month}-[0-9]{2}) ${time} GMT$`,
)
const withoutZone = new RegExp(`^${day} ${month} [ 1-3][0-9] ${time} [0-9]{4}$`)

/**
 * Milliseconds after `answeredAt` (milliseconds since the epoch) for which the receiver asks to be left alone, at most
 * `maxRetryAfter`; 0 for a text that is neither seconds nor a date, and for a date in the past.
 */
export const waitAskedBy = (retryAfter: string, answeredAt: number): number => {
  const text = retryAfter.trim()
  const wait = /^[0-9]{1,15}$/.test(text)
    ? Number(text) * 1_000
    : withZone.test(text)
    ? Date.parse(text) - answeredAt
    : withoutZone.test(text)
    ? Date.parse(`${text} GMT`) - answeredAt
    : 0
  // False for NaN, which is what `Date.parse` makes of the 39th of a month.
  return wait > 0 ? Math.min(wait, maxRetryAfter) : 0
}
