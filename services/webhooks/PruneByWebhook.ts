/**
 * Deletes old rows that belong to webhooks, webhook by webhook, whose index finds them: an index on the age alone would
 * cost each written row an entry.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

export interface OldRows {
  /** A table that is not partitioned. Its index begins with `webhook_id` and the column of `order`. */
  readonly table: string
  /** SQL of the rows that go; `w` is their webhook. */
  readonly where: Statement.Fragment
  readonly order: string
  /** Rows of one statement. */
  readonly batch: number
}

/** Deletes until a batch is not full; returns how many rows. Each batch commits by itself. */
export const pruneByWebhook = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { batch, order, table, where }: OldRows,
): Effect.fn.Return<number, SqlError.SqlError> {
  let pruned = 0
  for (;;) {
    const [gone] = yield* sql<{ n: number }>`
      with gone as (
        delete from ${sql(table)} where ctid = any(array(
          select o.ctid from webhooks w cross join lateral (
            select ctid from ${sql(table)} where webhook_id = w.id and ${where} order by ${sql(order)} limit ${batch}
          ) o limit ${batch}
        )) returning 1
      )
      select count(*)::int as n from gone`
    pruned += gone!.n
    if (gone!.n < batch) return pruned
  }
})
