/** An index on the identities of people who were merged into others: looked up with every person's token. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index people_merged_names on people (issuer, subject) where merged_into is not null`
})
