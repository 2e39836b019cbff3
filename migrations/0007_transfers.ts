/**
 * Domain transfers, the timers that advance them, and the key pairs that completion makes.
 *
 * At most one transfer of a domain is live: the unique index enforces it for every writer. The tokens of the mailed
 * links are stored as SHA-256, with the values from which they are derived; used ones stay, so that an old link can
 * explain itself.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table transfers (
    id uuid primary key,
    version integer not null,
    -- The command that made the row what it is: a command that comes twice is answered as the first time.
    command_id uuid not null,
    domain_id uuid not null,
    domain_name text not null,
    source_user_id uuid not null,
    source_org_id uuid not null,
    source_label text not null,
    initiated_by uuid not null,
    target_user_id uuid not null,
    target_email text not null,
    target_org_id uuid,
    status text not null
      check (status in ('pending', 'accepted', 'completed', 'declined', 'cancelled', 'reversed', 'expired')),
    note text,
    rotate_dkim boolean not null,
    forced boolean not null,
    initiated_at timestamptz not null,
    expires_at timestamptz not null,
    accepted_at timestamptz,
    cooloff_until timestamptz,
    completed_at timestamptz,
    accept_kid text,
    accept_nonce bytea,
    accept_hash bytea unique check (octet_length(accept_hash) = 32),
    accept_used boolean not null default false,
    stop_kid text,
    stop_nonce bytea,
    stop_hash bytea unique check (octet_length(stop_hash) = 32),
    stop_used boolean not null default false,
    check (source_user_id <> target_user_id),
    check (forced or accept_hash is not null),
    check ((status = 'completed') = (completed_at is not null)),
    check (status not in ('accepted', 'completed') or (accepted_at is not null and target_org_id is not null)),
    check (status <> 'accepted' or (cooloff_until is not null and stop_hash is not null))
  )`,
  `create unique index transfers_live on transfers (domain_id) where status in ('pending', 'accepted')`,
  `create index transfers_incoming on transfers (target_user_id, initiated_at desc, id desc)
    where status in ('pending', 'accepted')`,
  `create index transfers_leaving on transfers (source_user_id) where status in ('pending', 'accepted')`,
  `create index transfers_outgoing on transfers (initiated_by, initiated_at desc, id desc)`,
  `create index transfers_of_domain on transfers (domain_id, id)`,
  // The next transition that a state makes by itself, rewritten by every change of the state. `not_before` is `due_at`,
  // or later after a failure.
  `create table timers (
    key text primary key generated always as (kind || ':' || aggregate_id) stored,
    aggregate_id text not null,
    kind text not null,
    due_at timestamptz not null,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    unique (aggregate_id, kind),
    check ((claim is null) = (lease_until is null))
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)`,
  `create index timers_due on timers (not_before, key) where claim is null`,
  `create index timers_leases on timers (lease_until) where claim is not null`,
  // The private half is sealed by the Vault; the platform publishes the selector and the public half.
  `create table dkim_keys (
    id uuid primary key,
    domain_id uuid not null,
    transfer_id uuid not null,
    selector text not null,
    algorithm text not null check (algorithm in ('rsa', 'ed25519')),
    public_key text not null,
    private_kid text not null,
    private_key bytea not null,
    created_at timestamptz not null,
    unique (domain_id, selector)
  )`,
  // Whether transfers are on, as of the last start. After they come back on, every accepted transfer can still be
  // stopped until `resuming_until`.
  `create table transfer_feature (
    singleton boolean primary key default true check (singleton),
    enabled boolean not null,
    resuming_until timestamptz
  )`,
  `insert into transfer_feature (enabled) values (true)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
