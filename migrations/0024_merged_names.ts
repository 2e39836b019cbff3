/** By which identity somebody came who was merged into another: looked for with every token of a person's. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index people_merged_names on people (issuer, subject) where merged_into is not null`
})
