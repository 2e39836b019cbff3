/** Witnesses of the transparency log, and the end of a log's key. */
const statements: ReadonlyArray<string> = [
  `create table log_witnesses (
    -- As its operator publishes it.
    verifier_key text primary key,
    -- What the witness has cosigned last, as far as it has told.
    known_size bigint not null default 0,
    -- The newest checkpoint that it has cosigned, with the log's own lines, and the witness's line.
    cosigned_size bigint,
    checkpoint text,
    line text,
    cosigned_at timestamptz,
    next_at timestamptz not null,
    failures integer not null default 0,
    fault text
  ) with (fillfactor = 50)`,
  // A retired key signs no more checkpoints; what it has signed stays the log's.
  `alter table log_keys add column retired_at timestamptz`,
]

export default statements
