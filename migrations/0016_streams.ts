/**
 * Streams of the Shared Signals Framework: the receiver's configuration, the stream's progress, and messages of one
 * stream alone. A stream serves one project. Events are not copied: a stream is a position in its project's history,
 * with the events beyond that position that are settled already.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table lifecycle_streams (
    id uuid primary key,
    project_id text not null,
    -- Who made it, by issuer and client; nobody else sees it.
    service_issuer text not null,
    service_id text not null,
    status text not null check (status in ('enabled', 'paused', 'disabled')),
    status_by text not null check (status_by in ('receiver', 'transmitter')),
    status_reason text,
    delivery text not null check (delivery in ('push', 'poll')),
    endpoint_url text,
    -- Sealed by the Vault.
    authorization_header bytea,
    vault_kid text,
    -- Null: all that there are.
    events_requested text[],
    description text,
    verified_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    version integer not null default 1,
    -- Everything up to here was delivered, was not for this stream, or was dropped while it was disabled.
    epoch integer not null,
    position bigint not null,
    -- Of push with subjects that are held up: how far it was looked at beyond the place. Null: the place itself.
    reached bigint,
    -- Of push alone (Leases): so many attempts in a row have failed; a stream that is not failing is due whenever there is
    -- something for it.
    attempts integer not null default 0,
    not_before timestamptz not null default 'epoch',
    last_error text,
    claim bigint,
    lease_until timestamptz,
    -- Since when nothing has been taken.
    failing_since timestamptz,
    check ((delivery = 'push') = (endpoint_url is not null)),
    check ((authorization_header is null) = (vault_kid is null))
    -- Of a stream that is pushed to, the place is written all the time, and no index has it.
  ) with (fillfactor = 70)`,
  `create index lifecycle_streams_receiver on lifecycle_streams (service_issuer, service_id, id)`,
  `create index lifecycle_streams_project on lifecycle_streams (project_id, id)`,
  // Streams of every status: a stream that was stopped still gets the message that says so.
  `create index lifecycle_streams_due on lifecycle_streams (not_before, id) where claim is null and delivery = 'push'`,
  `create index lifecycle_streams_leased on lifecycle_streams (lease_until) where claim is not null`,
  // Subjects that differ from the default, which includes all.
  `create table lifecycle_stream_subjects (
    stream_id uuid not null references lifecycle_streams on delete cascade,
    -- SHA-256 over the subject's canonical JSON.
    subject_digest text not null,
    subject jsonb not null,
    included boolean not null,
    -- In which order they were said: the last one that speaks of an event decides.
    said bigint generated always as identity,
    created_at timestamptz not null,
    primary key (stream_id, subject_digest)
  )`,
  // Settled beyond the stream's position: acknowledged out of order, or of a subject that is not blocked.
  `create table lifecycle_stream_settled (
    stream_id uuid not null references lifecycle_streams on delete cascade,
    epoch integer not null,
    position bigint not null,
    primary key (stream_id, epoch, position)
  )`,
  // A filtered stream that pushes keeps order per subject: a failure blocks its own subject only. All events of a
  // blocked subject wait from this position on; those of every other subject are delivered up to the stream's progress.
  `create table lifecycle_stream_failing (
    stream_id uuid not null references lifecycle_streams on delete cascade,
    subject_digest text not null,
    subject jsonb not null,
    epoch integer not null,
    position bigint not null,
    attempts integer not null,
    not_before timestamptz not null,
    last_error text,
    primary key (stream_id, subject_digest)
  )`,
  // Verification and stream-updated: for one stream, without a position.
  `create table lifecycle_stream_messages (
    id uuid primary key,
    stream_id uuid not null references lifecycle_streams on delete cascade,
    kind text not null check (kind in ('verification', 'stream-updated')),
    message text not null,
    -- Delivered once the stream has come to here; null: before everything else.
    after_epoch integer,
    after_position bigint,
    created_at timestamptz not null,
    delivered_at timestamptz
  )`,
  `create index lifecycle_stream_messages_waiting on lifecycle_stream_messages (stream_id, id)
    where delivered_at is null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
