/** The transparency log of decisions: entries, tiles of the Merkle tree, the head, and the key that signs checkpoints. */
const statements: ReadonlyArray<string> = [
  `create table log_entries (
    index bigint primary key,
    -- The decision's audit record.
    record_id uuid not null,
    salt bytea not null,
    digest bytea not null
  )`,
  `create unique index log_entries_record on log_entries (record_id)`,
  // A tile is complete at 256 hashes, and never changes then.
  `create table log_tiles (
    level smallint not null,
    index bigint not null,
    hashes bytea not null check (length(hashes) between 32 and 8192 and length(hashes) % 32 = 0),
    primary key (level, index)
  ) with (fillfactor = 80)`,
  `create table log_head (
    single boolean primary key default true check (single),
    -- How the log names itself in its checkpoints, for ever.
    origin text not null,
    size bigint not null check (size >= 0),
    root bytea not null check (length(root) = 32),
    changed_at timestamptz not null,
    -- The installation's epoch in which the head was last found to continue what the broker has.
    confirmed_epoch integer,
    published_size bigint check (published_size <= size),
    -- The last message of the log on the broker; 0 where it has none.
    published_seq bigint not null default 0,
    published_at timestamptz,
    -- The newest checkpoint that the broker has, which is served.
    checkpoint text,
    held_since timestamptz,
    held_reason text
  ) with (fillfactor = 50)`,
  `create table log_keys (
    -- As verifiers are told it.
    verifier_key text primary key,
    private_key bytea not null,
    vault_kid text not null,
    created_at timestamptz not null
  )`,
]

export default statements
