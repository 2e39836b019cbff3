/**
 * Identifies this database. A server that took another's place (a promoted standby, a restored backup) may lack the
 * last decisions. It is recognised by its identifier, its timeline, or the mark of a restore, and begins a new epoch,
 * in which nothing new is activated until everything that was revoked meanwhile is revoked again.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table installation (
    singleton boolean primary key default true check (singleton),
    -- The server and timeline that the epoch belongs to; null before the first start.
    system_identifier text,
    timeline_id text,
    -- The run of the server that was compared with them last: another run is compared anew.
    server text,
    epoch integer not null default 1 check (epoch between 1 and 500000),
    state text not null default 'open' check (state in ('open', 'held')),
    held_since timestamptz,
    -- A code: why it is still held.
    held_reason text,
    -- Set by a restore: when its backup was made. The next statement that would tell anything begins the new epoch.
    restored_from timestamptz,
    -- From when on the streams may know more than this database.
    lost_since timestamptz,
    -- When each stream was made, as it was known before the hold: another one knows nothing of what was lost.
    streams jsonb not null default '{}',
    -- Sign-ins that are not later than this are dead.
    sessions_before timestamptz,
    -- What is done of the way back.
    intake_rewound_at timestamptz,
    tokens_renewed_at timestamptz,
    reapplied_at timestamptz,
    opened_at timestamptz,
    -- Which process is at it.
    recovering uuid,
    recovering_until timestamptz,
    check ((state = 'held') = (held_since is not null and held_reason is not null))
  )`,
  `insert into installation default values`,
  // The run of the answering server, and its timeline: cheap enough for every transaction that appends events.
  `create function running_on() returns text language sql volatile as $$
    select extract(epoch from pg_postmaster_start_time())::text || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  $$`,
  // The owner may have the right where the program's role does not.
  `create function server_identifier() returns text language sql volatile security definer
    set search_path = pg_catalog as $$ select system_identifier::text from pg_control_system() $$`,
  // A person whom this program disabled stays disabled until the directory has said the same.
  `alter table people add column status_decided boolean not null default false`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
