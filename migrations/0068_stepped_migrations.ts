/** The steps that are done of migrations that commit each of their statements by itself (src/MigrationSteps.ts). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`create table stepped_migrations (
    migration_id integer not null,
    step integer not null,
    done_at timestamptz not null,
    primary key (migration_id, step)
  )`)
})
