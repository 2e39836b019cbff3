/**
 * Links that show an account's webhooks in a frame of another page (services/console/EmbedLinks.ts), and the session that
 * each of them opens once. Token and session are known by their SHA-256 alone.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table embed_links (
    id uuid primary key,
    account_id uuid not null,
    key_id uuid not null,
    token_hash bytea not null unique check (octet_length(token_hash) = 32),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    session_hash bytea unique check (octet_length(session_hash) = 32),
    session_ends_at timestamptz,
    check ((session_hash is null) = (session_ends_at is null))
  ) with (fillfactor = 80)`,
  // For the removal of what has ended.
  `create index embed_links_ended on embed_links (coalesce(session_ends_at, expires_at))`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
