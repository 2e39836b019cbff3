/** Why a backfill's last bite failed, and a fence between a bite and a look at the rows that are left. */
const statements: ReadonlyArray<string> = [
  // Raised by every bite and by every look that changes the row.
  `alter table backfills add column revision bigint not null default 0`,
  // Null: the last bite succeeded.
  `alter table backfills add column last_error text`,
  `alter table backfills add column failed_at timestamptz`,
]

export default statements
