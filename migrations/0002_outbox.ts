/** The outbox of messages to publish, and the last known state of the broker's streams. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The number of a claim, which every statement that settles must name. All claimed tables draw from this one
  // sequence.
  `create sequence claims`,
  `create table outbox (
    id uuid primary key,
    stream text not null,
    subject text not null,
    payload text not null,
    headers jsonb,
    msg_id text,
    aggregate_id text,
    seq bigint,
    lane smallint generated always as ((hashtext(aggregate_id) & 15)::smallint) stored,
    created_at timestamptz not null,
    published_at timestamptz,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    check ((aggregate_id is null) = (seq is null)),
    check ((claim is null) = (lease_until is null))
  ) with (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
  )`,
  // Each scan has an index of exactly its rows, so that no scan grows with the rows that are published already.
  `create index outbox_due on outbox (not_before, id)
    where published_at is null and aggregate_id is null and claim is null`,
  `create index outbox_leases on outbox (lease_until) where claim is not null`,
  `create index outbox_lane on outbox (lane, aggregate_id, seq, id)
    where published_at is null and aggregate_id is not null`,
  `create index outbox_published on outbox (stream, published_at) where published_at is not null`,
  // One leased owner per lane; the fence rises with every change of owner.
  `create table outbox_lanes (
    lane smallint primary key check (lane between 0 and 15),
    owner uuid,
    fence bigint not null default 0,
    lease_until timestamptz
  )`,
  `insert into outbox_lanes (lane) select generate_series(0, 15)`,
  // The last known state of the broker. While again_until is set, rows published from again_since to then go out again.
  `create table relay_streams (
    stream text primary key,
    created text not null,
    last_seq bigint not null,
    server text not null,
    again_since timestamptz,
    again_until timestamptz,
    swept boolean not null default true
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
