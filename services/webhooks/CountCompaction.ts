/** Compacts the rows of delivery counts, so that a total is a sum of few rows. It does not change the totals. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { tryLock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"

const batch = 20_000

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
        const [row] = yield* sql<{ n: number }>`
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
        return row!.n === batch
      }).pipe(sql.withTransaction)
      return CountCompaction.of({ compact })
    }),
  )
}
