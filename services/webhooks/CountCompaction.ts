/**
 * Compacts the rows of delivery counts and of their minutes, so that a total is a sum of few rows. It does not change the
 * totals. The minutes that it compacts also bring the health of their webhooks up to date, so that no settlement has to.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { tryLock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"

const batch = 20_000

/** Compacts counts; the row says how many were not compacted. */
const compactCounts = (sql: PgClient.PgClient) =>
  sql<{ n: number }>`
    with uncompacted as materialized (
      select ctid from delivery_counts where not folded limit ${batch}
    ), removed as (
      delete from delivery_counts c using uncompacted u where c.ctid = u.ctid
      returning c.webhook_id, c.day, c.status, c.n
    ), keys as (
      select webhook_id, day, status, sum(n) as n from removed group by 1, 2, 3
    ), replaced as (
      delete from delivery_counts c using keys k
      where c.webhook_id = k.webhook_id and c.day = k.day and c.status = k.status and c.folded
      returning c.webhook_id, c.day, c.status, c.n
    ), compacted as (
      insert into delivery_counts (webhook_id, day, status, n, folded)
      select webhook_id, day, status, sum(n), true from (
        select webhook_id, day, status, n from keys union all select webhook_id, day, status, n from replaced
      ) a group by 1, 2, 3 having sum(n) <> 0
    )
    select count(*)::int as n from removed`

/** SQL: whether the attempts of a row are failures of the receiver: those without an outcome are not. */
const isFailure = "r.outcome <> 'delivered' and r.n > r.interrupted"

/**
 * SQL: adds the minutes of the CTE `removed` to the health of their webhooks. Minutes may come in any order. A failure
 * in the minute of a success does not count as one after it, and an attempt without an outcome is none. A success ends the
 * episode of failures of which the account was told.
 */
const newHealth = (sql: PgClient.PgClient) =>
  sql.literal(`
      insert into webhook_health as known (webhook_id, last_success_at, last_failure_at, failing_since)
      select e.webhook_id, e.success, e.failure, (
        select min(r.minute) from removed r
        where r.webhook_id = e.webhook_id and ${isFailure} and (e.success is null or r.minute > e.success)
      )
      from (
        select r.webhook_id,
          greatest(max(r.minute) filter (where r.outcome = 'delivered'), max(h.last_success_at)) as success,
          greatest(max(r.minute) filter (where ${isFailure}), max(h.last_failure_at)) as failure
        from removed r join webhooks w on w.id = r.webhook_id and w.deleted_at is null
        left join webhook_health h on h.webhook_id = r.webhook_id
        group by r.webhook_id
      ) e
      on conflict (webhook_id) do update
      set last_success_at = excluded.last_success_at, last_failure_at = excluded.last_failure_at,
        failing_told_at = case when excluded.last_success_at is not distinct from known.last_success_at
          then known.failing_told_at end,
        failing_since = case
          when excluded.last_failure_at > coalesce(excluded.last_success_at, '-infinity') then coalesce(
            least(case when known.failing_since > coalesce(excluded.last_success_at, '-infinity')
              then known.failing_since end, excluded.failing_since), excluded.last_failure_at)
        end`)

/** The same of the minutes of statistics. */
const compactMinutes = (sql: PgClient.PgClient) =>
  sql<{ n: number }>`
    with uncompacted as materialized (
      select ctid from delivery_minutes where not folded limit ${batch}
    ), removed as (
      delete from delivery_minutes c using uncompacted u where c.ctid = u.ctid
      returning c.webhook_id, c.minute, c.outcome, c.ms_octave, c.n, c.ms_sum, c.ms_max, c.interrupted
    ), keys as (
      select distinct webhook_id, minute, outcome, ms_octave from removed
    ), replaced as (
      delete from delivery_minutes c using keys k
      where c.webhook_id = k.webhook_id and c.minute = k.minute and c.outcome = k.outcome
        and c.ms_octave is not distinct from k.ms_octave and c.folded
      returning c.webhook_id, c.minute, c.outcome, c.ms_octave, c.n, c.ms_sum, c.ms_max, c.interrupted
    ), compacted as (
      insert into delivery_minutes (webhook_id, minute, outcome, ms_octave, n, ms_sum, ms_max, interrupted, folded)
      select webhook_id, minute, outcome, ms_octave, sum(n), sum(ms_sum), max(ms_max), sum(interrupted), true from (
        select * from removed union all select * from replaced
      ) a group by 1, 2, 3, 4
    ), health as (
      -- Writes what these minutes say of the health of their webhooks.${newHealth(sql)}
    )
    select count(*)::int as n from removed`

export class CountCompaction extends Context.Service<CountCompaction, {
  /** Compacts one batch; returns whether there may be more. One process at a time; in the others it does nothing. */
  readonly compact: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/webhooks/CountCompaction") {
  static readonly layer = Layer.effect(
    CountCompaction,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const compact = Effect.gen(function* () {
        if (!(yield* tryLock(sql, "counts"))) return false
        const [counts] = yield* compactCounts(sql)
        const [minutes] = yield* compactMinutes(sql)
        return counts!.n === batch || minutes!.n === batch
      }).pipe(sql.withTransaction)
      return CountCompaction.of({ compact })
    }),
  )
}
