/** Policy reviews by institution and state: those of an institution that wait are not looked for among all it ever had. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index policy_reviews_of_institution on policy_reviews (institution_id, state, id)`
  yield* sql`drop index policy_reviews_institution`
})
