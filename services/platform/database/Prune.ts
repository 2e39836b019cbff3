/** Deletes old rows, batch by batch, so that no statement runs long or holds many locks. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { faultPoint } from "../Failpoints.ts"

export interface Pruned {
  /** A table that is not partitioned: a row's address (`ctid`) is one within its partition. */
  readonly table: string
  /** SQL of the rows that go. */
  readonly where: Statement.Fragment
  /**
   * The column, or the SQL of an expression, by which rows are read and go, the smallest first: an index has it, so that
   * few other rows are read.
   */
  readonly order: string | Statement.Fragment
  /** Rows of one statement. */
  readonly batch: number
}

/**
 * Deletes the rows of a table that meet `where`, until a batch is not full; returns how many. Each batch commits by
 * itself, so a stop between two loses nothing. Rows that another transaction has locked are left to the next call, so
 * any number of processes may prune one table.
 */
export const prune = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { batch, order, table, where }: Pruned,
): Effect.fn.Return<number, SqlError.SqlError> {
  const by = typeof order === "string" ? sql(order) : order
  let pruned = 0
  for (;;) {
    // By address, from an array: joined with a limit of unknown size, the planner might read the whole table.
    const [gone] = yield* sql<{ n: number }>`
      with gone as (
        delete from ${sql(table)} where ctid = any(array(
          select ctid from ${sql(table)} where ${where} order by ${by} limit ${batch} for update skip locked
        )) returning 1
      )
      select count(*)::int as n from gone`
    pruned += gone!.n
    if (gone!.n < batch) return pruned
    yield* faultPoint("prune.committed")
  }
})
