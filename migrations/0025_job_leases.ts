/** Jobs whose lease ended, and those that may be forgotten, are found also where a month of them that were done lies beside. */
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
