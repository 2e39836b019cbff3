/**
 * Signed messages of lifecycle events: signing keys, the signed bytes, how far each project's history is signed, and
 * how far its consumers are. Bytes are signed once and stored; every consumer receives these same bytes, by every way.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Private keys are sealed. A kid is the RFC 7638 thumbprint of its public key.
  `create table signing_keys (
    kid text primary key,
    state text not null
      check (state in ('announced', 'published', 'active', 'retiring', 'retired', 'compromised')),
    public_jwk jsonb not null,
    private_key bytea not null,
    vault_kid text not null,
    created_at timestamptz not null,
    changed_at timestamptz not null
  )`,
  `create unique index signing_keys_active on signing_keys (state) where state = 'active'`,
  `create table lifecycle_messages (
    event_id uuid primary key,
    project_id text not null,
    epoch integer not null,
    position bigint not null,
    kid text not null,
    message text not null,
    signed_at timestamptz not null,
    unique (project_id, epoch, position)
  )`,
  // The position up to which a project's history is signed without a gap.
  `create table lifecycle_signed (
    project_id text primary key,
    epoch integer not null,
    position bigint not null
  )`,
  // A service that reads a project's history, by issuer and client.
  `create table lifecycle_consumers (
    project_id text not null,
    consumer text not null,
    delivered_epoch integer,
    delivered_position bigint,
    delivered_at timestamptz,
    acknowledged_epoch integer,
    acknowledged_position bigint,
    acknowledged_at timestamptz,
    installed_version text,
    primary key (project_id, consumer)
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
