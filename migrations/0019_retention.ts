/**
 * Retention of history, and its measurements. Events and their messages are dropped after ninety days, by the
 * database's own clock; the positions of events that decisions refer to stay. Also parts of snapshots that are too
 * large for one message, how long consumers take, and drift of the event state.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Read in the order of bytes, page by page, by the primary key.
  `alter table lifecycle_state alter column key type text collate "C"`,
  // The trace (W3C Trace Context) of the deciding request; part of neither the message nor the chain.
  `alter table lifecycle_events add column traceparent text`,
  `alter table lifecycle_messages add column traceparent text, add column decided_at timestamptz`,
  `create function keep_lifecycle_event() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' and old.created_at < clock_timestamp() - interval '90 days' then
      return old;
    end if;
    raise exception '% is written once and kept for ninety days', tg_table_name using errcode = 'restrict_violation';
  end $$`,
  `drop trigger lifecycle_events_kept on lifecycle_events`,
  `create trigger lifecycle_events_kept before update or delete on lifecycle_events
    for each row execute function keep_lifecycle_event()`,
  // The positions of events to which Access versions, reviews and grants refer for ever.
  `create table lifecycle_places (
    id uuid primary key,
    project_id text not null,
    epoch integer not null,
    position bigint not null,
    digest text not null,
    created_at timestamptz not null
  )`,
  `create trigger lifecycle_places_kept before update or delete on lifecycle_places
    for each row execute function refuse_change()`,
  `create trigger lifecycle_places_not_emptied before truncate on lifecycle_places
    for each statement execute function refuse_change()`,
  `create view lifecycle_told as
    select id, project_id, epoch, position, digest, created_at from lifecycle_events
    union all
    select id, project_id, epoch, position, digest, created_at from lifecycle_places`,
  // Pieces of the canonical JSON of a project's state, by their digest; the newest snapshot that names one keeps it.
  `create table lifecycle_snapshot_parts (
    project_id text not null,
    digest text not null,
    content text not null,
    named_at timestamptz not null,
    primary key (project_id, digest)
  )`,
  `create index lifecycle_snapshot_parts_named on lifecycle_snapshot_parts (named_at)`,
  // A histogram of delivery times in milliseconds, in powers of the square root of two; older events weigh less and
  // less.
  `alter table lifecycle_consumers add column to_delivery integer[] not null default '{}',
    add column to_acknowledgement integer[] not null default '{}'`,
  `create function lifecycle_counted(kept integer[], more integer[]) returns integer[] language sql immutable as $$
    select coalesce(array_agg(coalesce(a, 0) / (case when (select sum(k) from unnest(kept) k) > 10000 then 2 else 1 end)
      + coalesce(b, 0) order by n), '{}')
    from unnest(kept, more) with ordinality u(a, b, n)
  $$`,
  // Keys of the event state that differ from the domain's own tables.
  `create table lifecycle_drift (
    project_id text not null,
    key text not null,
    expected text,
    observed text,
    first_seen_at timestamptz not null,
    primary key (project_id, key)
  )`,
  `create table lifecycle_drift_looks (
    project_id text primary key,
    looked_at timestamptz not null
  )`,
  `create index lifecycle_drift_looks_oldest on lifecycle_drift_looks (looked_at)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
