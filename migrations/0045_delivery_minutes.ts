/**
 * Attempts by webhook and minute, for statistics: kept for 30 days. Append-only deltas as `delivery_counts`, compacted
 * now and then, so that no batch waits for another's counter.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table delivery_minutes (
    webhook_id uuid not null,
    minute timestamptz not null,
    outcome text not null check (outcome in ('delivered', 'failed', 'dead_letter')),
    n bigint not null,
    ms_sum bigint not null,
    ms_max integer not null,
    folded boolean not null default false
  ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)`,
  `create index delivery_minutes_of_webhook on delivery_minutes (webhook_id, minute)`,
  `create index delivery_minutes_loose on delivery_minutes (webhook_id) where not folded`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
