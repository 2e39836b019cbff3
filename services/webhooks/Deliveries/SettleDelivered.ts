/**
 * The usual end, in one short statement: deliveries whose receiver answered 2xx. Deleting the queue row by its claim is
 * the fence and the lock at once, so nothing is locked before and no lane is looked at. Beside `settle`, which can settle
 * everything, this costs PostgreSQL about half.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Result } from "../Sender/Task.ts"
import { arrayOf } from "./arrayOf.ts"
import { dayOf } from "./Day.ts"
import type { Settled } from "./Settle.ts"

/** Whether this result ends its delivery well. */
export const isDelivered = ({ ending, error, status }: Result): boolean =>
  ending === "answered" && error === null && status !== null && status >= 200 && status < 300

const compare = (a: Result, b: Result): number => a.task.deliveryId < b.task.deliveryId ? -1 : 1

/**
 * Settles results that are all `isDelivered`; those whose claim is no longer the row's change nothing. No bounds on the
 * ids beside the key, as in `settle`: a generic plan would leave deliveries out.
 */
export const settleDelivered = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  results: ReadonlyArray<Result>,
): Effect.fn.Return<ReadonlyArray<Settled>, SqlError.SqlError> {
  if (results.length === 0) return []
  // In id order, as every statement that locks queue rows.
  const sorted = [...results].sort(compare)
  const of = (f: (result: Result) => string | number | bigint) => arrayOf(sorted.map(f))
  return yield* sql<Settled>`
    with result as materialized (
      select r.id, r.claim, to_timestamp(r.started / 1000.0) as started, r.took, r.status, nullif(r.body, '') as body,
        nullif(r.url, '') as url
      from unnest(${of((r) => r.task.deliveryId)}::uuid[], ${of((r) => r.task.claim)}::bigint[],
        ${of((r) => r.startedAt)}::float8[], ${of((r) => r.durationMs)}::int[], ${of((r) => r.status ?? 0)}::int[],
        ${sorted.map((r) => r.body ?? "")}::text[], ${sorted.map((r) => r.url ?? "")}::text[])
        r(id, claim, started, took, status, body, url)
    ), ended as (
      delete from delivery_queue q using result r where q.delivery_id = r.id and q.claim = r.claim
      returning q.delivery_id as id, q.webhook_id, q.account_id, q.cycle, q.attempt, q.claim,
        r.started, r.took, r.status, r.body, r.url
    ), attempted as (
      insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
      select id, cycle, attempt, claim, started, took, status from ended
      on conflict do nothing
    ), updated as (
      update deliveries d set status = 'delivered', attempt = e.attempt, response_status = e.status, error = null,
        next_retry_at = null, endpoint_url = coalesce(e.url, d.endpoint_url), response_body = e.body
      from ended e where d.id = e.id
    ), counted as (
      insert into delivery_counts (webhook_id, day, status, n)
      select c.webhook_id, c.day, s.status, s.sign * c.n from (
        select webhook_id, ${dayOf(sql, "id")} as day,
          case when attempt = 1 then 'pending' else 'retrying' end as was, count(*) as n
        from ended group by 1, 2, 3
      ) c cross join lateral (values ('delivered', 1), (c.was, -1)) s(status, sign)
    )
    select id as delivery_id, webhook_id, account_id, 'delivered' as next from ended`
})
