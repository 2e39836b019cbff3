/**
 * What the platform's administrators list of all accounts, and what an account has received before; and since when the
 * doctor finds a subject not to be fine: a row until a look finds it fine again.
 */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists transfers_status on transfers (status, id)`,
  `create index concurrently if not exists transfers_named on transfers (lower(domain_name collate "C"), id)`,
  `create index concurrently if not exists transfers_received on transfers (target_user_id, id)`,
  `create table finding_times (
    subject text primary key,
    since timestamptz not null
  )`,
]

export default statements
