/**
 * A directory line from a source that is not fully trusted was applied in part. The same version from a trusted source
 * is still applied: `unfollowed` marks rows that wait for it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["people", "institutions"]) {
    yield* sql`alter table ${sql(table)} add column unfollowed boolean not null default false`
  }
})
