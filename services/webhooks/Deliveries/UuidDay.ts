import type { PgClient } from "@effect/sql-pg"

/** SQL: the UTC day in a UUIDv7, by which deliveries and their counts are partitioned. `column`: a column's name. */
export const dayOf = (sql: PgClient.PgClient, column: "id" | "delivery_id") =>
  sql.literal(
    `to_timestamp(('x' || lpad(substr(replace(${column}::text, '-', ''), 1, 12), 16, '0'))::bit(64)::bigint / 1000.0)::date`,
  )
