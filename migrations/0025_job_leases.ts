/**
 * Indexes of jobs whose lease ended, and of jobs that may be deleted, so that both are found beside a month of done
 * jobs.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index jobs_leases on jobs (lease_until) where claim is not null`,
  `create index jobs_done on jobs (not_before) where state = 'effective'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
