/** An index on a project's launch proposals, newest first, a page at a time. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index requests_launches on requests (project_id, id desc) where kind = 'launch'`
})
