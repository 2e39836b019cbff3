/**
 * Where the attempts of a delivery are: one that succeeded at once has its first attempt in its own row, as `first_…`,
 * and whatever failed, was interrupted or repeated is a row of `attempts`. A delivery that succeeded before there were
 * such columns has all of them there.
 *
 * No other attempt of the first cycle stands beside one in the row, so by cycle it comes first.
 */

/** SQL of all attempts of the delivery whose row is `d`. The one in the row has no claim any more: 0 stands for it. */
export const attemptsOf = (d: string): string =>
  `select cycle, attempt, claim, started_at, duration_ms, response_status, error from attempts where delivery_id = ${d}.id
  union all
  select 1, 1, 0, ${d}.first_started_at, ${d}.first_duration_ms, ${d}.first_response_status, null
  where ${d}.first_started_at is not null`
