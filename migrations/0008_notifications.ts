/**
 * Notifications. Every change of an account's notifications locks and updates its inbox: the inbox's version is the
 * position from which live streams resume. Versions follow the order of commits, because the row is locked until the
 * commit.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // `epoch` identifies the history of these positions: a position of another epoch is meaningless here.
  `create table inboxes (
    account_id uuid primary key,
    epoch text not null,
    version bigint not null check (version >= 0),
    total integer not null check (total >= 0),
    unread integer not null check (unread between 0 and total),
    -- The position of the newest read-all, and its moment.
    read_all_version bigint not null default 0,
    read_all_at timestamptz
  ) with (fillfactor = 70)`,
  // A notification that is not shown goes out by other channels only; its row is kept so that repeats within the hour
  // coalesce.
  `create table notifications (
    id uuid primary key,
    account_id uuid not null,
    shown boolean not null,
    -- The inbox's version when it was last announced or read by itself.
    version bigint,
    category text not null,
    severity text not null,
    title text not null,
    body text not null,
    href text not null,
    -- How often it was said within its hour.
    count integer not null,
    coalesce_key text,
    created_at timestamptz not null,
    read_at timestamptz,
    check (shown = (version is not null))
  ) with (fillfactor = 85)`,
  `create unique index notifications_coalesced on notifications (account_id, coalesce_key)
    where coalesce_key is not null`,
  `create index notifications_newest on notifications (account_id, created_at desc, id desc) where shown`,
  `create index notifications_unread on notifications (account_id, created_at desc, id desc)
    where shown and read_at is null`,
  `create index notifications_position on notifications (account_id, version) where shown`,
  `create index notifications_age on notifications (created_at)`,
  // The account's own choices; defaults are merged when they are read.
  `create table notification_preferences (
    account_id uuid primary key,
    choices jsonb not null,
    updated_at timestamptz not null
  )`,
  // A message to an account's Slack channel. Its address is read when it is sent.
  `create table slack_messages (
    id uuid primary key,
    account_id uuid not null,
    severity text not null,
    title text not null,
    body text not null,
    href text not null,
    state text not null default 'pending' check (state in ('pending', 'sent', 'failed')),
    created_at timestamptz not null,
    ended_at timestamptz,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    check ((claim is null) = (lease_until is null))
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)`,
  `create index slack_messages_due on slack_messages (not_before, id) where claim is null and state = 'pending'`,
  `create index slack_messages_leases on slack_messages (lease_until) where claim is not null`,
  `create index slack_messages_in_flight on slack_messages (account_id) where claim is not null`,
  `create index slack_messages_ended on slack_messages (ended_at) where ended_at is not null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
