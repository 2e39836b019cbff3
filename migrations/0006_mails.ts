/**
 * Outgoing mail: one row per message, kept after it ended. The message is rendered when it is sent, so no row holds a
 * link or a token. `not_before` null: no further attempt will be made.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table mails (
    id uuid primary key,
    kind text not null,
    subject_id text not null,
    recipient text not null,
    args jsonb not null,
    state text not null default 'pending' check (state in ('pending', 'sent', 'failed', 'unknown', 'dropped')),
    -- Given before the first attempt and never changed: a repeat is the same message to a reader.
    message_id text,
    -- An attempt has gone past the point where its outcome is ours to know.
    sending boolean not null default false,
    -- Attempts that ended so.
    doubts smallint not null default 0,
    created_at timestamptz not null,
    sent_at timestamptz,
    ended_at timestamptz,
    attempts integer not null default 0,
    not_before timestamptz,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    check ((claim is null) = (lease_until is null))
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)`,
  `create index mails_due on mails (not_before, id) where claim is null and not_before is not null`,
  `create index mails_leases on mails (lease_until) where claim is not null`,
  `create index mails_ended on mails (ended_at) where ended_at is not null`,
  `create index mails_troubled on mails (state) where state in ('failed', 'unknown')`,
  `create index mails_of_subject on mails (subject_id, created_at)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
