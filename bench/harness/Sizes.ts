/** Sizes of tables on disk and their dead rows, a table's partitions together. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

export interface Size {
  /** MB (10^6 bytes) of the table and of its indexes. */
  readonly table: number
  readonly indexes: number
  readonly live: number
  readonly dead: number
}

/** Sizes by name; the counts of rows are PostgreSQL's own estimates. */
export const sizesOf = (sql: PgClient.PgClient, names: ReadonlyArray<string>) =>
  Effect.map(
    sql<Size & { readonly name: string }>`
      select n.name, (sum(pg_table_size(t.relid)) / 1e6)::float8 as table,
        (sum(pg_indexes_size(t.relid)) / 1e6)::float8 as indexes,
        sum(coalesce(s.n_live_tup, 0))::float8 as live, sum(coalesce(s.n_dead_tup, 0))::float8 as dead
      from unnest(${[...names]}::text[]) n(name)
      cross join lateral (
        select n.name::regclass union all select inhrelid from pg_inherits where inhparent = n.name::regclass
      ) t(relid)
      left join pg_stat_user_tables s on s.relid = t.relid
      group by n.name`,
    (rows) => new Map(rows.map(({ name, ...size }) => [name, size as Size])),
  )
