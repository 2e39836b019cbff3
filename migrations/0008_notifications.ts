/**
 * Notifications. An inbox is the row that every change of an account's notifications takes and counts on: its version is
 * the position that live streams resume from, given in commit order because the row is held to the commit.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // `epoch` says whose positions these are: a position of another epoch means nothing here.
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
  // One that is not shown is told by other channels only; it is kept so that what is said again within the hour coalesces.
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
  // What an account chose itself; defaults are merged when it is read.
  `create table notification_preferences (
    account_id uuid primary key,
    choices jsonb not null,
    updated_at timestamptz not null
  )`,
  // A message to an account's Slack channel. Whither it goes is read when it leaves.
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
