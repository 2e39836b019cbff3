/**
 * The directory's mail kinds and API keys.
 *
 * The seven tables of the directory share `id, version, removed, updated_at`. `version` is the directory's: a line with
 * an older or equal version is ignored, and a removed row stays as a tombstone so that a late line cannot revive it. No
 * foreign keys between them: a reference may arrive before its target, and lookups join. Addresses are compared by
 * `lower(… collate "C")`, which folds ASCII only.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const feed = `id uuid primary key,
    version bigint not null check (version >= 1),
    removed boolean not null,
    updated_at timestamptz not null`

const statements = [
  `create table accounts (
    ${feed},
    email text,
    name text,
    plan text check (plan in ('free', 'starter', 'pro', 'business')),
    domain_limit integer,
    platform_admin boolean,
    status text check (status in ('active', 'disabled')),
    slack_webhook_url text,
    check (removed or (email is not null and name is not null and plan is not null and platform_admin is not null
      and status is not null))
  )`,
  // Not unique: the directory decides which account has an address, and two accounts may swap theirs in either order.
  `create index accounts_email on accounts (lower(email collate "C")) where not removed`,
  `create table workspaces (
    ${feed},
    name text,
    created_at timestamptz,
    check (removed or (name is not null and created_at is not null))
  )`,
  `create table workspace_memberships (
    ${feed},
    workspace_id uuid,
    account_id uuid,
    role text check (role in ('owner', 'admin', 'member')),
    check (removed or (workspace_id is not null and account_id is not null and role is not null))
  )`,
  `create index workspace_memberships_account on workspace_memberships (account_id, workspace_id) where not removed`,
  `create index workspace_memberships_workspace on workspace_memberships (workspace_id, account_id) where not removed`,
  // The domain row is the aggregate of all changes of a domain: `revision` is our fence, raised by every change, the
  // directory's included. While `owner_held`, the owner is our decision and the directory has not echoed it yet.
  `create table domains (
    ${feed},
    revision bigint not null default 1,
    name text,
    account_id uuid,
    workspace_id uuid,
    verified_at timestamptz,
    dkim_selector text,
    owner_held boolean not null default false,
    check (removed or (name is not null and account_id is not null and workspace_id is not null
      and dkim_selector is not null))
  )`,
  `create index domains_account on domains (account_id) where not removed`,
  `create index domains_workspace on domains (workspace_id) where not removed`,
  `create index domains_name on domains (lower(name collate "C")) where not removed`,
  `create table broadcasts (
    ${feed},
    domain_id uuid,
    name text,
    status text check (status in ('draft', 'scheduled', 'sending', 'sent', 'cancelled')),
    scheduled_at timestamptz,
    check (removed or (domain_id is not null and name is not null and status is not null))
  )`,
  `create index broadcasts_in_flight on broadcasts (domain_id, id)
    where not removed and status in ('scheduled', 'sending')`,
  `create table scheduled_emails (
    ${feed},
    domain_id uuid,
    subject text,
    scheduled_at timestamptz,
    status text check (status in ('scheduled', 'sent', 'cancelled')),
    check (removed or (domain_id is not null and subject is not null and scheduled_at is not null
      and status is not null))
  )`,
  `create index scheduled_emails_waiting on scheduled_emails (domain_id, id) where not removed and status = 'scheduled'`,
  // `revoked_at` is the directory's, `locally_revoked_at` our own decision, which is never taken back.
  `create table smtp_credentials (
    ${feed},
    domain_id uuid,
    account_id uuid,
    username text,
    revoked_at timestamptz,
    locally_revoked_at timestamptz,
    check (removed or (domain_id is not null and account_id is not null and username is not null))
  )`,
  `create index smtp_credentials_live on smtp_credentials (domain_id, account_id)
    where not removed and revoked_at is null and locally_revoked_at is null`,
  `create table api_keys (
    id uuid primary key,
    account_id uuid not null,
    name text not null,
    hash bytea not null unique check (octet_length(hash) = 32),
    key_prefix text not null,
    permissions text[] not null,
    is_active boolean not null,
    last_used_at timestamptz,
    created_at timestamptz not null,
    revoked_at timestamptz,
    check (is_active = (revoked_at is null))
  ) with (fillfactor = 80)`,
  `create index api_keys_active on api_keys (account_id, created_at desc, id desc) where is_active`,
  // Rows that the demo directory made: a start without DEMO disables them.
  `create table demo_rows (
    kind text not null,
    id uuid not null,
    primary key (kind, id)
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
