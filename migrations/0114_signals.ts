/** Security events of identity providers, and the people whom such events hold. */
const statements: ReadonlyArray<string> = [
  `create table signal_events (
    transmitter text not null,
    jti text not null,
    -- SHA-256 of its claims.
    digest bytea not null,
    event text not null,
    outcome text not null,
    received_at timestamptz not null,
    primary key (transmitter, jti)
  )`,
  `create index signal_events_received on signal_events (received_at)`,
  `create table signal_polls (
    transmitter text primary key,
    attempts integer not null default 0,
    not_before timestamptz not null,
    last_error text,
    claim bigint,
    lease_until timestamptz,
    -- When the transmitter has answered a poll last.
    answered_at timestamptz
  ) with (fillfactor = 50)`,
  `create table person_holds (
    person_id text not null,
    transmitter text not null,
    -- Of the newest word of the transmitter on the account.
    kind text not null check (kind in ('disabled', 'purged', 'released')),
    told_at timestamptz not null,
    changed_at timestamptz not null,
    primary key (person_id, transmitter)
  )`,
  `create index person_holds_changed on person_holds (changed_at) where kind <> 'released'`,
  // What the directory says of a person whom a transmitter holds; null: no transmitter holds the person.
  `alter table people add column held_under text`,
]

export default statements
