/** Compacts the rows of delivery counts, so that a total is a sum of few rows. It does not change the totals. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { tryLock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"

const batch = 20_000

export class CountCompaction extends Context.Service<CountCompaction, {
  /** Compacts one batch; returns whether there may be more. One process at a time; in the others it does nothing. */
  readonly fold: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/webhooks/CountCompaction") {
  static readonly layer = Layer.effect(
    CountCompaction,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fold = Effect.gen(function* () {
        if (!(yield* tryLock(sql, "counts"))) return false
        const [row] = yield* sql<{ n: number }>`
          with loose as materialized (
            select ctid from delivery_counts where not folded limit ${batch}
          ), gone as (
            delete from delivery_counts c using loose where c.ctid = loose.ctid
            returning c.webhook_id, c.day, c.status, c.n
          ), keys as (
            select webhook_id, day, status, sum(n) as n from gone group by 1, 2, 3
          ), before as (
            delete from delivery_counts c using keys k
            where c.webhook_id = k.webhook_id and c.day = k.day and c.status = k.status and c.folded
            returning c.webhook_id, c.day, c.status, c.n
          ), folded as (
            insert into delivery_counts (webhook_id, day, status, n, folded)
            select webhook_id, day, status, sum(n), true from (
              select webhook_id, day, status, n from keys union all select webhook_id, day, status, n from before
            ) a group by 1, 2, 3 having sum(n) <> 0
          )
          select count(*)::int as n from gone`
        return row!.n === batch
      }).pipe(sql.withTransaction)
      return CountCompaction.of({ fold })
    }),
  )
}
