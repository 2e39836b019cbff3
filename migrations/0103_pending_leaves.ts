/** Decisions that the transparency log has yet to integrate: each is written with the decision's audit record. */
const statements: ReadonlyArray<string> = [
  `create table log_pending (
    -- The decision's audit record.
    record_id uuid primary key,
    decided_at timestamptz not null,
    salt bytea not null check (length(salt) = 16),
    -- SHA-256 of the record and the salt: the log's entry.
    digest bytea not null check (length(digest) = 32)
  ) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)`,
]

export default statements
