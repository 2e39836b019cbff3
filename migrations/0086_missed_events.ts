/** Events that a webhook subscribes to and did not get, since it was paused; kept for as long as the events are. */
const statements: ReadonlyArray<string> = [
  `create table missed_events (
    webhook_id uuid not null,
    event_id uuid not null,
    primary key (webhook_id, event_id)
  ) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)`,
]

export default statements
