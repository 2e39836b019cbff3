/**
 * Jobs for the identity provider, and the embedded provider's own clients. A job is claimed; its call is marked as
 * begun, with the reference by which the client can be found; the call is made outside of any transaction; its outcome
 * is recorded under the claim. A call that was begun and has no outcome is `ambiguous`: never repeated blindly.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table provider_jobs (
    id uuid primary key,
    kind text not null check (kind in ('client.create', 'client.update', 'client.disable')),
    project_id text not null,
    -- 'pending' and claimed is what is shown as running.
    state text not null check (state in ('pending', 'effective', 'failed', 'ambiguous')),
    -- Waits for a review; not claimed before it is released.
    held boolean not null default false,
    reference text not null,
    target jsonb,
    target_digest text,
    begun_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    check ((claim is null) = (lease_until is null))
  )`,
  `create index provider_jobs_due on provider_jobs (not_before, id)
    where claim is null and state = 'pending' and not held`,
  `create index provider_jobs_leases on provider_jobs (lease_until) where claim is not null`,
  `create index provider_jobs_project on provider_jobs (project_id, id)`,
  `create index provider_jobs_open on provider_jobs (state) where state <> 'effective'`,
  // The known state of a project's client at the provider. The management credential of RFC 7592 is sealed.
  `create table provider_clients (
    project_id text primary key,
    reference text not null unique,
    client_id text not null unique,
    management_uri text,
    management_token bytea,
    kid text,
    expected jsonb not null,
    expected_digest text not null,
    disabled boolean not null default false,
    made_at timestamptz not null,
    looked_at timestamptz
  )`,
  // Fields of the provider's client that differ from the expected ones.
  `create table client_drift (
    project_id text not null,
    field text not null,
    client_id text not null,
    expected_digest text not null,
    observed_digest text not null,
    first_seen_at timestamptz not null,
    primary key (project_id, field)
  )`,
  // The embedded provider's clients, by the reference of the request that made them.
  `create table embedded_clients (
    client_id text primary key,
    reference text not null unique,
    metadata jsonb not null,
    disabled boolean not null default false,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  // The loops of each process, for diagnostics.
  `create table worker_sightings (
    worker text not null,
    instance text not null,
    last_seen_at timestamptz not null,
    stopped boolean not null default false,
    primary key (worker, instance)
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
