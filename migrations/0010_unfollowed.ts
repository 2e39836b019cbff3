/**
 * A line that was not followed leaves out what it may not say. The same version from whom is followed
 * then still says the rest: `unfollowed` marks rows that wait for it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["people", "institutions"]) {
    yield* sql`alter table ${sql(table)} add column unfollowed boolean not null default false`
  }
})
