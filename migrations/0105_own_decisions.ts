/** Indexes by which what a person approved or declined is listed, newest first, without reading all of it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index policy_approvals_of_person on policy_approvals (person_id, review_id)`,
  `drop index policy_approvals_person`,
  `create index policy_reviews_declined_by on policy_reviews (declined_by, id) where declined_by is not null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
