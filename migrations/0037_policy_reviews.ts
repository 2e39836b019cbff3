/**
 * An index on policy reviews by institution and state: an institution's open reviews are found without reading all its
 * earlier ones.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index policy_reviews_of_institution on policy_reviews (institution_id, state, id)`
  yield* sql`drop index policy_reviews_institution`
})
