/** Programs before version 61, the one of the release before, do not know this schema's columns: it admits none of them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe("update schema_meta set min_app = 61")
})
