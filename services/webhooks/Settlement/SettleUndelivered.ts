/**
 * Settles what was not delivered: attempts that failed, claims that were given back, and claims that ended without an
 * outcome. One statement, fenced by the claim: attempts are recorded, deliveries updated in place, queue rows are gone or
 * due again, counts and lanes are moved along. A result whose claim is no longer the row's changes nothing.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { attemptsOf } from "../Deliveries/Attempts.ts"
import { lockClaims, lockLanes } from "../Deliveries/RowLocks.ts"
import { dayOf } from "../Deliveries/UuidDay.ts"
import { whole } from "./AssertAllUpdated.ts"
import type { Decision, Next } from "./SettlementDecision.ts"

/** A delivery that is settled, as the statement gives it. */
export interface SettledRow {
  readonly delivery_id: string
  readonly webhook_id: string
  readonly account_id: string
  readonly next: Exclude<Next, "delivered">
}

/** The decisions as rows. */
const resultRows = (sql: PgClient.PgClient, decisions: ReadonlyArray<Decision>, now: number) => {
  // One type an array: beside moments of today, the 0 of what was never begun is another, and no batch would settle.
  const of = <A>(f: (d: Decision) => A) => decisions.map(f)
  return sql`
      select r.id, r.claim, r.next, to_timestamp(r.due / 1000.0) as due,
        to_timestamp(r.started / 1000.0) as started, r.took, nullif(r.status, 0) as status, nullif(r.error, '') as error,
        nullif(r.body, '') as body, nullif(r.url, '') as url
      from unnest(${of((d) => d.result.task.deliveryId)}::uuid[], ${of((d) => d.result.task.claim)}::bigint[], ${
    of((d) => d.next)
  }::text[], ${of((d) => d.dueAt)}::float8[], ${of((d) => d.result.startedAt || now)}::float8[], ${
    of((d) => d.result.durationMs)
  }::int[], ${of((d) => d.result.status ?? 0)}::int[], ${of((d) => d.result.error ?? "")}::text[], ${
    of((d) => d.result.body ?? "")
  }::text[], ${of((d) => d.result.url ?? "")}::text[])
        r(id, claim, next, due, started, took, status, error, body, url)`
}

/** Of `fenced`, the dead letters: each with its event and all of its attempts, this one last. */
const burial = (sql: PgClient.PgClient, now: number) =>
  sql`
      insert into dead_letters (delivery_id, webhook_id, account_id, event_id, event_type, source_id, body, cycle, attempt,
        response_status, error, endpoint_url, response_body, attempts, created_at, died_at)
      select f.id, f.webhook_id, f.account_id, f.event_id, e.event, e.source_id, e.body, f.cycle, f.attempt,
        f.status, f.error, coalesce(f.url, d.endpoint_url), f.body,
        coalesce((
          select jsonb_agg(jsonb_build_object('cycle', a.cycle, 'attempt', a.attempt,
            'started_at', to_char(a.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'duration_ms', a.duration_ms, 'response_status', a.response_status, 'error', a.error)
            order by a.cycle, a.attempt, a.claim)
          from (${sql.literal(attemptsOf("d"))}) a
        ), '[]'::jsonb) || jsonb_build_array(jsonb_build_object('cycle', f.cycle, 'attempt', f.attempt,
            'started_at', to_char(f.started at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'duration_ms', f.took, 'response_status', f.status, 'error', f.error)),
        d.created_at, ${new Date(now)}
      from fenced f join events e on e.id = f.event_id join deliveries d on d.id = f.id where f.next = 'dead'
      on conflict (delivery_id) do nothing`

/**
 * Settles decisions of which none is `delivered`, made at `now`, in a transaction of its own or the current one; gives
 * those whose claim was still the row's. The rows that it meets are locked before (RowLocks.ts).
 *
 * No bounds on the ids beside `d.id = f.id`: with both, PostgreSQL 18.4 prunes twice in a generic plan, at its start and
 * for each row, and the second time leaves out the one partition that the first left: nothing is updated, without a word.
 */
export const settleUndelivered = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  decisions: ReadonlyArray<Decision>,
  now: number,
): Effect.fn.Return<ReadonlyArray<SettledRow>, SqlError.SqlError> {
  if (decisions.length === 0) return []
  yield* lockClaims(sql, decisions.map(({ result }) => result.task))
  const later = decisions.filter(({ next }) => next !== "dead")
  if (later.length > 0) yield* lockLanes(sql, later.map(({ result }) => result.task.webhookId))
  const rows = yield* sql<SettledRow & { readonly updated: number }>`
    with result as materialized (${resultRows(sql, decisions, now)}
    ), fenced as materialized (
      select r.*, q.webhook_id, q.account_id, q.event_id, q.cycle, q.attempt,
        case when q.attempt = 1 then 'pending' else 'retrying' end as was,
        case r.next when 'dead' then 'dead_letter' when 'retry' then 'retrying' end as now
      -- By key, one by one; and the fence outside, where the planner takes it for as strict as it is.
      from result r cross join lateral (select * from delivery_queue where delivery_id = r.id offset 0) q
      where q.claim = r.claim
    ), ended as (
      delete from delivery_queue q using fenced f where q.delivery_id = f.id and f.next = 'dead'
    ), again as (
      update delivery_queue q set claim = null, lease_until = null, due_at = f.due,
        attempt = q.attempt + case when f.next = 'retry' then 1 else 0 end,
        attempts_interrupted = q.attempts_interrupted + case when f.next = 'interrupted' then 1 else 0 end
      from fenced f where q.delivery_id = f.id and f.next in ('retry', 'released', 'interrupted')
    ), attempted as (
      insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status, error)
      select id, cycle, attempt, claim, started, took, status, error from fenced where next <> 'released'
      on conflict do nothing
    ), updated as (
      update deliveries d set status = f.now, attempt = f.attempt, response_status = f.status, error = f.error,
        next_retry_at = case when f.next = 'retry' then f.due end,
        endpoint_url = coalesce(f.url, d.endpoint_url), response_body = f.body
      from fenced f
      where d.id = f.id and f.now is not null
      returning 1
    ), buried as (${burial(sql, now)}
    ), counted as (
      insert into delivery_counts (webhook_id, day, status, n)
      select webhook_id, day, status, sum(n) from (
        select webhook_id, ${dayOf(sql, "id")} as day, now as status, 1 as n from fenced where now is not null
        union all
        select webhook_id, ${dayOf(sql, "id")}, was, -1 from fenced where now is not null
      ) c group by webhook_id, day, status having sum(n) <> 0
    ), moved as (
      update webhook_lanes l set next_due_at = f.due
      from (select webhook_id, min(due) as due from fenced where next in ('retry', 'released', 'interrupted')
        group by webhook_id) f
      where l.webhook_id = f.webhook_id and (l.next_due_at is null or l.next_due_at > f.due)
    )
    select id as delivery_id, webhook_id, account_id, next, (select count(*)::int from updated) as updated from fenced`
  const changed = rows.flatMap(({ delivery_id, next }) => next === "dead" || next === "retry" ? [delivery_id] : [])
  yield* whole(sql, changed, rows[0]?.updated ?? 0)
  return rows
}, (effect, sql) => sql.withTransaction(effect))
