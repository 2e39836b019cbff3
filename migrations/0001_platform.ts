/** The platform's tables: audit, key ring, rate limits, and the oldest program version that this schema admits. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table schema_meta (
    singleton boolean primary key default true check (singleton),
    min_app integer not null
  )`,
  `insert into schema_meta (min_app) values (1)`,
  `create table audit_records (
    id uuid primary key,
    at timestamptz not null,
    request_id text,
    route text,
    action text not null,
    actor text,
    subject text,
    outcome text not null check (outcome in ('done', 'refused', 'failed')),
    status integer,
    code text,
    details jsonb not null default '{}'
  )`,
  `create index audit_records_request on audit_records (request_id) where request_id is not null`,
  `create index audit_records_subject on audit_records (subject, id) where subject is not null`,
  `create index audit_records_actor on audit_records (actor, id) where actor is not null`,
  // One row per key of the ring: a process whose ring lacks a key, or has another key under its name, does not start.
  `create table vault_keys (
    kid text primary key,
    check_value bytea not null,
    created_at timestamptz not null
  )`,
  // Exact limits: the moments of the window, in one row per key, so that every process counts the same.
  `create table rate_limits (
    key text primary key,
    hits timestamptz[] not null,
    expires_at timestamptz not null
  )`,
  `create index rate_limits_expiry on rate_limits (expires_at)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
