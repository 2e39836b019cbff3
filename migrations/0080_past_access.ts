/** Indexes for the Access of an institution at a past moment (services/access/PastAccess.ts). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index access_versions_institution on access_versions (institution_id, access_id, access_version)`,
  // The index of open reviews does not have those that ended.
  `create index access_reviews_version on access_reviews (access_id, access_version)`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
