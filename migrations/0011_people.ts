/**
 * Authenticators and sessions of people, with sessions learned from tokens, intents to change credentials, and proofs
 * of another identity. And the buckets of generous rate limits.
 *
 * A session is the issuer's (`issuer`, `sid`); its row records a revocation. Secrets are sealed under the key ring
 * (`kid` beside them) or stored as HMACs under it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Every read of a person's own data looks for people that were merged into the person.
  `create index people_merged on people (merged_into) where merged_into is not null`,
  `create table sessions (
    id uuid primary key,
    issuer text not null,
    sid text not null,
    person_id text not null,
    client_id text not null,
    issued_at timestamptz not null,
    authenticated_at timestamptz,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    acr text,
    aal text not null check (aal in ('aal1', 'aal2', 'aal3', 'unknown')),
    amr text[] not null,
    user_agent text,
    ip_prefix text,
    revoked_at timestamptz,
    unique (issuer, sid)
  ) with (fillfactor = 80)`,
  `create index sessions_person on sessions (person_id)`,
  `create index sessions_client on sessions (client_id) where revoked_at is null`,
  // Sign-ins of a person up to this time are dead, except one session: also those without a row.
  `create table session_floors (
    person_id text primary key,
    before timestamptz not null,
    except_issuer text not null,
    except_sid text
  )`,
  `create table authenticators (
    id uuid primary key,
    person_id text not null,
    kind text not null check (kind in ('passkey', 'security_key', 'totp', 'recovery_codes', 'password')),
    label text not null,
    created_at timestamptz not null,
    last_used_at timestamptz,
    -- WebAuthn (Level 3, 4 and 6.1).
    credential_id text unique,
    public_key bytea,
    sign_count bigint,
    aaguid text,
    transports text[] not null default '{}',
    platform boolean,
    backup_eligible boolean,
    backup_state boolean,
    -- TOTP (RFC 6238): the seed, sealed, and the last step whose code was taken.
    kid text,
    secret bytea,
    last_step bigint,
    check ((kind in ('passkey', 'security_key')) = (credential_id is not null and public_key is not null)),
    check ((kind = 'totp') = (kid is not null and secret is not null))
  )`,
  `create index authenticators_person on authenticators (person_id, id)`,
  `create unique index authenticators_one_set_of_codes on authenticators (person_id) where kind = 'recovery_codes'`,
  `create table recovery_codes (
    authenticator_id uuid not null references authenticators on delete cascade,
    kid text not null,
    hash bytea not null check (octet_length(hash) = 32),
    used_at timestamptz,
    primary key (authenticator_id, hash)
  )`,
  `create table credential_intents (
    id uuid primary key,
    person_id text not null,
    kind text not null,
    target_id text,
    label text,
    state text not null check (state in ('pending', 'completed', 'failed', 'expired', 'superseded')),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    ended_at timestamptz,
    bad_proofs integer not null default 0,
    -- SHA-256 of the portal's binding, where the start brought one.
    binding bytea check (octet_length(binding) = 32),
    -- WebAuthn: what the authenticator signs. TOTP: the seed, sealed.
    challenge text,
    kid text,
    secret bytea,
    check ((state = 'pending') = (ended_at is null))
  )`,
  // A newer start supersedes an open one of the same kind and target.
  `create unique index credential_intents_open on credential_intents (person_id, kind, coalesce(target_id, ''))
    where state = 'pending'`,
  // Proofs that the caller also holds another identity: bound to the caller, usable once. A token proves once (its
  // jti).
  `create table link_proofs (
    id uuid primary key,
    person_id text not null,
    issuer text not null,
    subject text not null,
    jti text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    consumed_at timestamptz,
    unique (issuer, jti)
  )`,
  // A bucket fills up with time. A process draws tokens for a while ahead, so that few requests write here.
  `create table rate_buckets (
    key text primary key,
    level double precision not null,
    -- What the last draw took.
    drawn integer not null,
    at timestamptz not null,
    full_at timestamptz not null
  ) with (fillfactor = 70)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
