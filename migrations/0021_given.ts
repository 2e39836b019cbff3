/**
 * Decisions that a filtered stream delivered to its receiver: the position of such a stream does not show which earlier
 * events it delivered. Kept as long as rows refer to the decision.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table lifecycle_given (
      project_id text not null,
      epoch integer not null,
      position bigint not null,
      given_at timestamptz not null,
      primary key (project_id, epoch, position)
    )`
})
