/**
 * Webhooks and their deliveries (docs/delivery.md). Tables that grow with the traffic (events, deliveries, attempts)
 * are partitioned by the day in their UUIDv7, and dropped by the day; the queue of work is one small table beside them.
 * No foreign keys from these into webhooks or accounts: a fan-out must not lock rows that a person edits.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table webhooks (
    id uuid primary key,
    account_id uuid not null,
    url text not null,
    events text[] not null,
    is_active boolean not null,
    version integer not null,
    -- Sealed by the Vault; the old secret signs beside the new one until its overlap ends.
    secret_kid text not null,
    secret bytea not null,
    old_secret_kid text,
    old_secret bytea,
    old_secret_until timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
  )`,
  `create index webhooks_of_account on webhooks (account_id, created_at desc, id desc) where deleted_at is null`,
  // A webhook's entry in the scan: one row for any number of waiting deliveries, so that pausing changes one row.
  `create table webhook_lanes (
    webhook_id uuid primary key,
    account_id uuid not null,
    next_due_at timestamptz,
    paused boolean not null default false
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
  `create index webhook_lanes_due on webhook_lanes (next_due_at) where not paused and next_due_at is not null`,
  `create sequence delivery_claims`,
  `create table events (
    id uuid not null,
    account_id uuid not null,
    source_id text not null,
    event text not null,
    body text not null,
    created_at timestamptz not null,
    primary key (id)
  ) partition by range (id)`,
  `create table events_default partition of events default`,
  // No index contains the status: every update of a delivery stays on its page (HOT).
  `create table deliveries (
    id uuid not null,
    webhook_id uuid not null,
    account_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    status text not null,
    cycle integer not null,
    attempt integer not null,
    response_status integer,
    error text,
    next_retry_at timestamptz,
    endpoint_url text,
    response_body text,
    created_at timestamptz not null,
    primary key (id)
  ) partition by range (id)`,
  `create index deliveries_of_webhook on deliveries (webhook_id, id desc)`,
  `create table deliveries_default partition of deliveries default with (fillfactor = 70)`,
  `create table attempts (
    delivery_id uuid not null,
    cycle integer not null,
    attempt integer not null,
    claim bigint not null,
    started_at timestamptz not null,
    duration_ms integer not null,
    response_status integer,
    error text,
    primary key (delivery_id, cycle, attempt, claim)
  ) partition by range (delivery_id)`,
  `create table attempts_default partition of attempts default`,
  // `claim is null` is the only meaning of "not in flight"; a row is gone once its delivery has ended.
  `create table delivery_queue (
    delivery_id uuid primary key,
    webhook_id uuid not null,
    account_id uuid not null,
    event_id uuid not null,
    cycle integer not null,
    attempt integer not null,
    due_at timestamptz not null,
    claim bigint,
    lease_until timestamptz,
    attempts_interrupted integer not null default 0
  ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0)`,
  `create index delivery_queue_due on delivery_queue (webhook_id, due_at) where claim is null`,
  `create index delivery_queue_leases on delivery_queue (lease_until) where claim is not null`,
  // Append-only deltas, compacted now and then: a total is a sum of few rows, and no batch waits for another's counter.
  `create table delivery_counts (
    webhook_id uuid not null,
    day date not null,
    status text not null,
    n bigint not null,
    folded boolean not null default false
  ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)`,
  `create index delivery_counts_of_webhook on delivery_counts (webhook_id, day, status) include (n)`,
  `create index delivery_counts_loose on delivery_counts (webhook_id) where not folded`,
  // Stored whole, because dead letters outlive the partition of their delivery.
  `create table dead_letters (
    delivery_id uuid primary key,
    webhook_id uuid not null,
    account_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    source_id text not null,
    body text not null,
    cycle integer not null,
    attempt integer not null,
    response_status integer,
    error text,
    endpoint_url text,
    response_body text,
    attempts jsonb not null,
    created_at timestamptz not null,
    died_at timestamptz not null
  )`,
  `create index dead_letters_of_webhook on dead_letters (webhook_id, delivery_id desc)`,
  `create index dead_letters_died on dead_letters (died_at)`,
  // An event that its account has sent before is dropped while its id is in this table, even where the broker forgot
  // it.
  `create table seen_events (
    account_id uuid not null,
    key uuid not null,
    seen_on date not null,
    primary key (account_id, key)
  )`,
  `create index seen_events_age on seen_events using brin (seen_on)`,
  `create table intake_rejects (
    id uuid primary key,
    stream text not null,
    stream_seq bigint not null,
    subject text not null,
    reason text not null,
    detail text,
    payload bytea not null,
    account_id text,
    state text not null check (state in ('rejected', 'waiting', 'resolved')),
    received_at timestamptz not null,
    expires_at timestamptz
  )`,
  `create index intake_rejects_waiting on intake_rejects (account_id, id) where state = 'waiting'`,
  `create index intake_rejects_expiry on intake_rejects (expires_at) where state = 'waiting'`,
  `create index intake_rejects_newest on intake_rejects (received_at desc)`,
  // Work too long for a request: replays in bulk, the queue of a deleted webhook.
  `create table jobs (
    id uuid primary key,
    kind text not null,
    args jsonb not null,
    cursor jsonb,
    done bigint not null default 0,
    state text not null default 'pending' check (state in ('pending', 'effective', 'failed')),
    created_at timestamptz not null,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz
  )`,
  `create index jobs_due on jobs (not_before) where state = 'pending'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
