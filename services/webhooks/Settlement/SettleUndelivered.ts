/**
 * Settles claims that did not deliver: failed attempts, released claims, and claims that ended without an outcome. One
 * statement, fenced by the claim, records the attempts, updates the deliveries in place, deletes the queue rows or
 * makes them due again, and updates counts and queue states. A result whose claim is no longer the row's changes
 * nothing.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { attemptsOf } from "../Deliveries/Attempts.ts"
import { lockClaims, lockQueueStates } from "../Deliveries/RowLocks.ts"
import { dayOf } from "../Deliveries/UuidDay.ts"
import { assertAllUpdated } from "./AssertAllUpdated.ts"
import { octaveOf } from "./Octave.ts"
import type { Decision, Next } from "./SettlementDecision.ts"

/** A settled delivery. */
export interface SettledRow {
  readonly delivery_id: DeliveryId
  readonly webhook_id: WebhookId
  readonly account_id: AccountId
  readonly next: Exclude<Next, "delivered">
}

/** SQL: what an attempt keeps of the answer's body; all that is kept is in the delivery, for the last attempt alone. */
const keptBody = "left(f.body, 4096)"

/** SQL: the decisions as rows. */
const resultRows = (sql: PgClient.PgClient, decisions: ReadonlyArray<Decision>, now: number) => {
  // `|| now`: the client derives an array's type from its elements; 0 beside today's times is a second type, and the
  // batch would fail.
  const of = <A>(f: (d: Decision) => A) => decisions.map(f)
  return sql`
      select r.id, r.claim, r.next, to_timestamp(r.due / 1000.0) as due,
        to_timestamp(r.started / 1000.0) as started, r.took, nullif(r.status, 0) as status, nullif(r.error, '') as error,
        nullif(r.headers, '')::jsonb as headers, nullif(r.body, '') as body, nullif(r.url, '') as url
      from unnest(${of((d) => d.result.task.deliveryId)}::uuid[], ${of((d) => d.result.task.claim)}::bigint[], ${
    of((d) => d.next)
  }::text[], ${of((d) => d.dueAt)}::float8[], ${of((d) => d.result.startedAt || now)}::float8[], ${
    of((d) => d.result.durationMs)
  }::int[], ${of((d) => d.result.status ?? 0)}::int[], ${of((d) => d.result.error ?? "")}::text[], ${
    of(({ result: { headers } }) => headers == null ? "" : JSON.stringify(headers))
  }::text[], ${of((d) => d.result.body ?? "")}::text[], ${of((d) => d.result.url ?? "")}::text[])
        r(id, claim, next, due, started, took, status, error, headers, body, url)`
}

/** SQL: inserts the dead letters of the CTE `fenced`, each with its event and all attempts, this one last. */
const deadLetterRows = (sql: PgClient.PgClient, now: number) =>
  sql`
      insert into dead_letters (delivery_id, webhook_id, account_id, event_id, event_type, source_id, body, cycle, attempt,
        response_status, error, endpoint_url, response_body, attempts, created_at, died_at)
      select f.id, f.webhook_id, f.account_id, f.event_id, e.event, e.source_id, e.body, f.cycle, f.attempt,
        f.status, f.error, coalesce(f.url, d.endpoint_url), f.body,
        coalesce((
          select jsonb_agg(jsonb_build_object('cycle', a.cycle, 'attempt', a.attempt,
            'started_at', to_char(a.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'duration_ms', a.duration_ms, 'response_status', a.response_status, 'error', a.error,
            'response_headers', a.response_headers, 'response_body', a.response_body)
            order by a.cycle, a.attempt, a.claim)
          from (${sql.literal(attemptsOf("d"))}) a
        ), '[]'::jsonb) || jsonb_build_array(jsonb_build_object('cycle', f.cycle, 'attempt', f.attempt,
            'started_at', to_char(f.started at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'duration_ms', f.took, 'response_status', f.status, 'error', f.error,
            'response_headers', f.headers, 'response_body', ${sql.literal(keptBody)})),
        d.created_at, ${new Date(now)}
      from fenced f join events e on e.id = f.event_id join deliveries d on d.id = f.id where f.next = 'dead'
      on conflict (delivery_id) do nothing`

/** Rows of `delivery_minutes`; a released claim is no attempt. */
const minuteRows = (sql: PgClient.PgClient) =>
  sql.literal(`
      insert into delivery_minutes (webhook_id, minute, outcome, ms_octave, n, ms_sum, ms_max, interrupted)
      select webhook_id, date_trunc('minute', started, 'UTC'),
        case next when 'dead' then 'dead_letter' else 'failed' end, ${octaveOf("took")}, count(*), sum(took), max(took),
        count(*) filter (where error = 'interrupted')
      from fenced where next <> 'released' group by 1, 2, 3, 4`)

/**
 * Settles decisions of which none is `delivered`, made at `now` (milliseconds), in the current transaction or a new
 * one; returns those whose claim was still the row's. It locks the rows first, for the reason in RowLocks.ts.
 *
 * The statement must not restrict the ids beside `d.id = f.id`: with both conditions, PostgreSQL 18.4 prunes partitions
 * twice in a generic plan, at its start and for each row, and the second time removes the partition that the first one
 * kept, so that nothing is updated and no error is raised (see AssertAllUpdated.ts).
 */
export const settleUndelivered = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  decisions: ReadonlyArray<Decision>,
  now: number,
): Effect.fn.Return<ReadonlyArray<SettledRow>, SqlError.SqlError> {
  if (decisions.length === 0) return []
  yield* lockClaims(sql, decisions.map(({ result }) => result.task))
  const later = decisions.filter(({ next }) => next !== "dead")
  if (later.length > 0) yield* lockQueueStates(sql, later.map(({ result }) => result.task.webhookId))
  const rows = yield* sql<SettledRow & { readonly updated: number }>`
    with result as materialized (
      -- The decisions as rows.${resultRows(sql, decisions, now)}
    ), fenced as materialized (
      -- Those whose claim is still the row's; only these count. The rows are read by key, one by one, and the claim is
      -- compared outside, where the planner estimates it well.
      select r.*, q.webhook_id, q.account_id, q.event_id, q.cycle, q.attempt,
        case when q.attempt = 1 then 'pending' else 'retrying' end as was,
        case r.next when 'dead' then 'dead_letter' when 'retry' then 'retrying' end as now
      from result r cross join lateral (select * from delivery_queue where delivery_id = r.id offset 0) q
      where q.claim = r.claim
    ), ended as (
      -- Removes the queue rows of dead letters.
      delete from delivery_queue q using fenced f where q.delivery_id = f.id and f.next = 'dead'
    ), requeued as (
      -- Makes the other queue rows due again, without a claim.
      update delivery_queue q set claim = null, lease_until = null, due_at = f.due,
        attempt = q.attempt + case when f.next = 'retry' then 1 else 0 end,
        attempts_interrupted = q.attempts_interrupted + case when f.next = 'interrupted' then 1 else 0 end
      from fenced f where q.delivery_id = f.id and f.next in ('retry', 'released', 'interrupted')
    ), attempted as (
      -- Records the attempts; a released claim is none.
      insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status, error,
        response_headers, response_body)
      select id, cycle, attempt, claim, started, took, status, error, headers, ${sql.literal(keptBody)}
      from fenced f where next <> 'released'
      on conflict do nothing
    ), updated as (
      -- Updates the deliveries whose status changes.
      update deliveries d set status = f.now, attempt = f.attempt, response_status = f.status, error = f.error,
        next_retry_at = case when f.next = 'retry' then f.due end,
        endpoint_url = coalesce(f.url, d.endpoint_url), response_body = f.body
      from fenced f
      where d.id = f.id and f.now is not null
      returning 1
    ), died as (
      -- Writes the dead letters.${deadLetterRows(sql, now)}
    ), counted as (
      -- Moves the counts from the earlier status to the new one.
      insert into delivery_counts (webhook_id, day, status, n)
      select webhook_id, day, status, sum(n) from (
        select webhook_id, ${dayOf(sql, "id")} as day, now as status, 1 as n from fenced where now is not null
        union all
        select webhook_id, ${dayOf(sql, "id")}, was, -1 from fenced where now is not null
      ) c group by webhook_id, day, status having sum(n) <> 0
    ), by_minute as (
      -- Adds the attempts to their minutes, for statistics.${minuteRows(sql)}
    ), due_queues as (
      -- Sets an earlier due time for the queues of requeued deliveries.
      update webhook_lanes l set next_due_at = f.due
      from (select webhook_id, min(due) as due from fenced where next in ('retry', 'released', 'interrupted')
        group by webhook_id) f
      where l.webhook_id = f.webhook_id and (l.next_due_at is null or l.next_due_at > f.due)
    )
    select id as delivery_id, webhook_id, account_id, next, (select count(*)::int from updated) as updated from fenced`
  const changed = rows.flatMap(({ delivery_id, next }) => next === "dead" || next === "retry" ? [delivery_id] : [])
  yield* assertAllUpdated(sql, changed, rows[0]?.updated ?? 0)
  return rows
}, (effect, sql) => sql.withTransaction(effect))
