/** An index on an institution's invitations, newest first, a page at a time. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index requests_enrollments on requests (institution_id, id desc) where kind = 'enrollment'`
})
