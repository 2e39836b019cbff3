/**
 * Sign-ins of the web console (services/console/ConsoleSessions.ts). The browser's cookie is known by its SHA-256 alone,
 * and the issuer's tokens are sealed by the Vault. Any process of an older version leaves these rows alone.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table console_sessions (
    id uuid primary key,
    hash bytea not null unique check (octet_length(hash) = 32),
    issuer text not null,
    person_id text,
    account_id uuid,
    authenticated_at timestamptz,
    kid text not null,
    tokens bytea not null,
    tokens_until timestamptz,
    refreshed_by timestamptz,
    created_at timestamptz not null,
    seen_at timestamptz not null,
    ends_at timestamptz not null,
    check (person_id is not null or account_id is not null)
  ) with (fillfactor = 80)`,
  // For a sign-out everywhere.
  `create index console_sessions_person on console_sessions (person_id) where person_id is not null`,
  `create index console_sessions_account on console_sessions (account_id) where account_id is not null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
