import type { PgClient } from "@effect/sql-pg"

/** The day in UTC that a UUIDv7 carries, in SQL: where a delivery and its counts live. `column` is not a value. */
export const dayOf = (sql: PgClient.PgClient, column: "id" | "delivery_id") =>
  sql.literal(
    `to_timestamp(('x' || lpad(substr(replace(${column}::text, '-', ''), 1, 12), 16, '0'))::bit(64)::bigint / 1000.0)::date`,
  )
