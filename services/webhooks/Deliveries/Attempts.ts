/**
 * Where a delivery's attempts are stored: a first attempt that succeeded is in the delivery's own row (`first_…`);
 * failed, interrupted and repeated ones, and those that keep a success's header fields, are rows of `attempts`. Deliveries from before these columns have all attempts
 * there.
 *
 * A delivery with an attempt in its row has no other attempt in the first cycle, so that one comes first.
 */

/** SQL: all attempts of the delivery whose row is `d`. The one in the row has no claim; it is given as 0. */
export const attemptsOf = (d: string): string =>
  `select cycle, attempt, claim, started_at, duration_ms, response_status, error, response_headers, response_body
  from attempts where delivery_id = ${d}.id
  union all
  select 1, 1, 0, ${d}.first_started_at, ${d}.first_duration_ms, ${d}.first_response_status, null, null, null
  where ${d}.first_started_at is not null`
