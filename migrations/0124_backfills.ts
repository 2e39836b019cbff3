/** How far each backfill has come (services/platform/database/Backfills.ts). */
const statements: ReadonlyArray<string> = [
  `create table backfills (
    name text primary key,
    -- The table that it walks.
    table_name text not null,
    -- The key of the last row that was read, as text; null: none yet.
    after_key text,
    -- Rows of this walk that were read, and rows of all walks that were changed.
    read_rows bigint not null default 0,
    changed_rows bigint not null default 0,
    -- Rows a second, and when the next bite may begin, whichever process takes it.
    rate integer not null check (rate > 0),
    next_at timestamptz not null,
    begun_at timestamptz not null,
    -- Null: it is not finished.
    done_at timestamptz
  ) with (fillfactor = 50)`,
]

export default statements
