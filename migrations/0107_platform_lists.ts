/** What the platform's administrators list of all accounts, and what an account has received before. */
const statements: ReadonlyArray<string> = [
  `create index concurrently if not exists transfers_status on transfers (status, id)`,
  `create index concurrently if not exists transfers_named on transfers (lower(domain_name collate "C"), id)`,
  `create index concurrently if not exists transfers_received on transfers (target_user_id, id)`,
]

export default statements
