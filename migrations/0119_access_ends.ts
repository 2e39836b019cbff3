/**
 * The end of an Access. `access.ends_at`: when it is revoked by itself; null: it has no end. `access_ends` keeps each time
 * that the end was set, with who asked and signed, or shortened it.
 */
const statements: ReadonlyArray<string> = [
  `alter table access add column ends_at timestamptz`,
  `create table access_ends (
    id uuid primary key,
    access_id text not null,
    -- Null: the Access has no end any more.
    ends_at timestamptz,
    set_at timestamptz not null,
    made_by text not null,
    approved_by text[] not null default '{}',
    reason text not null,
    -- The reviewed request that set it; null where it was shortened.
    request_id uuid
  )`,
  `create index access_ends_access on access_ends (access_id, id)`,
  `create trigger access_ends_kept before update or delete on access_ends
    for each row execute function refuse_change()`,
  `create trigger access_ends_not_emptied before truncate on access_ends
    for each statement execute function refuse_change()`,
]

export default statements
