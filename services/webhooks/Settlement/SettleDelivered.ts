/**
 * Settles deliveries whose receiver answered 2xx, the usual outcome, in one short statement. Deleting the queue row by
 * its claim is the fence, and the queue state is not locked, which costs PostgreSQL half of what other outcomes cost.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { millisOf } from "../../platform/Ids.ts"
import { arrayOf } from "../Deliveries/PgArray.ts"
import { lockClaims } from "../Deliveries/RowLocks.ts"
import type { Result } from "../Sender/Task.ts"
import { assertAllUpdated } from "./AssertAllUpdated.ts"
import { octaveOf } from "./Octave.ts"

const compare = (a: Result, b: Result): number => a.task.deliveryId < b.task.deliveryId ? -1 : 1

const dayMillis = 24 * 60 * 60_000

/**
 * The statement. It must not restrict the ids beside the key (see `settleUndelivered`). Most addresses, bodies and
 * header fields are equal, so each distinct text is sent once. An attempt cannot have been recorded before: its claim ends in the
 * statement that records it.
 */
const ended = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  results: ReadonlyArray<Result>,
): Effect.fn.Return<ReadonlyArray<Result>, SqlError.SqlError> {
  // In id order, like all statements that lock queue rows.
  const sorted = [...results].sort(compare)
  const of = (f: (result: Result) => string | number | bigint) => arrayOf(sorted.map(f))
  const texts = new Map<string, number>()
  const textOf = (text: string | null): number => {
    if (text === null || text === "") return 0
    const known = texts.get(text) ?? texts.size + 1
    texts.set(text, known)
    return known
  }
  const [bodies, urls] = [of((r) => textOf(r.body)), of((r) => textOf(r.url))]
  const headers = of((r) => textOf(r.headers == null ? null : JSON.stringify(r.headers)))
  const [row] = yield* sql<
    { readonly n: number; readonly updated: number; readonly ids: ReadonlyArray<string> | null }
  >`
    with texts as materialized (
      -- The distinct bodies, addresses and header fields.
      select ${["", ...texts.keys()]}::text[] as of
    ), result as materialized (
      -- The results as rows.
      select r.id, r.claim, to_timestamp(r.started / 1000.0) as started, r.took, r.status, r.day,
        nullif((select of from texts)[r.body + 1], '') as body, nullif((select of from texts)[r.url + 1], '') as url,
        nullif((select of from texts)[r.headers + 1], '') as headers
      from unnest(${of((r) => r.task.deliveryId)}::uuid[], ${of((r) => r.task.claim)}::bigint[],
        ${of((r) => r.startedAt)}::float8[], ${of((r) => r.durationMs)}::int[], ${of((r) => r.status ?? 0)}::int[],
        ${of((r) => Math.floor(millisOf(r.task.deliveryId) / dayMillis))}::int[], ${bodies}::int[], ${urls}::int[],
        ${headers}::int[])
        r(id, claim, started, took, status, day, body, url, headers)
    ), ended as (
      -- Removes the queue rows whose claim is still the result's; only these results count.
      delete from delivery_queue q using result r where q.delivery_id = r.id and q.claim = r.claim
      returning q.delivery_id as id, q.webhook_id, q.cycle, q.attempt, q.claim,
        r.started, r.took, r.status, r.day, r.body, r.url, r.headers,
        q.cycle = 1 and q.attempt = 1 and q.attempts_interrupted = 0 and r.headers is null as at_once
    ), attempted as (
      -- Records the attempts, except those of deliveries that succeeded at once and keep no header fields.
      insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status,
        response_headers)
      select id, cycle, attempt, claim, started, took, status, headers::jsonb from ended where not at_once
    ), updated as (
      -- Updates the deliveries; those that succeeded at once have their attempt in the same row.
      update deliveries d set status = 'delivered', attempt = e.attempt, response_status = e.status, error = null,
        next_retry_at = null, endpoint_url = coalesce(e.url, d.endpoint_url), response_body = e.body,
        first_started_at = case when at_once then e.started else d.first_started_at end,
        first_duration_ms = case when at_once then e.took else d.first_duration_ms end,
        first_response_status = case when at_once then e.status else d.first_response_status end
      from ended e where d.id = e.id
      returning 1
    ), counted as (
      -- Moves the counts from the earlier status to delivered.
      insert into delivery_counts (webhook_id, day, status, n)
      select c.webhook_id, date '1970-01-01' + c.day, s.status, s.sign * c.n from (
        select webhook_id, day, case when attempt = 1 then 'pending' else 'retrying' end as was, count(*) as n
        from ended group by 1, 2, 3
      ) c cross join lateral (values ('delivered', 1), (c.was, -1)) s(status, sign)
    ), by_minute as (
      -- Adds the attempts to their minutes, for statistics.
      insert into delivery_minutes (webhook_id, minute, outcome, ms_octave, n, ms_sum, ms_max)
      select webhook_id, date_trunc('minute', started, 'UTC'), 'delivered', ${sql.literal(octaveOf("took"))},
        count(*), sum(took), max(took)
      from ended group by 1, 2, 4
    )
    select count(*)::int as n, (select count(*)::int from updated) as updated,
      case when count(*) < ${sorted.length}::int then array_agg(id::text) end as ids
    from ended`
  const { ids, n, updated } = row!
  const own = new Set(ids)
  const settled = n === sorted.length ? sorted : sorted.filter((result) => own.has(result.task.deliveryId))
  yield* assertAllUpdated(sql, settled.map(({ task }) => task.deliveryId), updated)
  return settled
})

/**
 * Settles results that were all delivered; returns those whose claim was still the row's. The others change nothing.
 * The queue rows are locked first, for the reason in RowLocks.ts.
 */
export const settleDelivered = (
  sql: PgClient.PgClient,
  results: ReadonlyArray<Result>,
): Effect.Effect<ReadonlyArray<Result>, SqlError.SqlError> =>
  results.length === 0 ? Effect.succeed([]) : lockClaims(sql, results.map(({ task }) => task)).pipe(
    Effect.andThen(ended(sql, results)),
    sql.withTransaction,
  )
