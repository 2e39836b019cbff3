/** An institution's projects are listed in the order of their ids, a page at a time. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`create index projects_of_institution on projects (institution_id, id) where not removed`)
})
