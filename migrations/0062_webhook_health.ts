/**
 * A webhook's description, and what its attempts say of its health. The health is a row of its own, which compaction
 * writes (services/webhooks/CountCompaction.ts): settlements do not touch it, and a change of the webhook waits for none.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table webhooks add column description text`,
  // All times are whole minutes. `failing_since`: the first failure after the last success, null where there is none.
  `create table webhook_health (
    webhook_id uuid primary key,
    last_success_at timestamptz,
    last_failure_at timestamptz,
    failing_since timestamptz
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
  // What the minutes of the last 30 days say, so that webhooks that are used already begin with it.
  `with ended as (
    select webhook_id, max(minute) filter (where outcome = 'delivered') as success,
      max(minute) filter (where outcome <> 'delivered') as failure
    from delivery_minutes group by webhook_id
  )
  insert into webhook_health (webhook_id, last_success_at, last_failure_at, failing_since)
  select e.webhook_id, e.success, e.failure, (
    select min(m.minute) from delivery_minutes m
    where m.webhook_id = e.webhook_id and m.outcome <> 'delivered' and (e.success is null or m.minute > e.success)
  )
  from ended e join webhooks w on w.id = e.webhook_id and w.deleted_at is null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
