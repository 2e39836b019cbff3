/**
 * Confirmations of Access: a person who answers for a project, or for its institution, says that an Access is still needed.
 * A confirmation names exactly one version. It is no review and changes no Access; it counts for when the next review is due.
 */
const statements: ReadonlyArray<string> = [
  `create table access_confirmations (
    id uuid primary key,
    institution_id text not null,
    access_id text not null,
    access_version integer not null,
    confirmed_by text not null,
    confirmed_at timestamptz not null,
    reason text not null,
    -- The campaign that asked; null where the person confirmed on its own.
    campaign_id uuid
  )`,
  `create index access_confirmations_access on access_confirmations (access_id, access_version, confirmed_at desc)`,
  `create trigger access_confirmations_kept before update or delete on access_confirmations
    for each row execute function refuse_change()`,
  `create trigger access_confirmations_not_emptied before truncate on access_confirmations
    for each statement execute function refuse_change()`,
]

export default statements
