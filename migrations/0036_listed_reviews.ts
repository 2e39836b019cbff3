/** An index on memberships by institution, which tells whether the list of its reviews is still current. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index institution_memberships_institution on institution_memberships (institution_id)`
})
