/**
 * Decisions that a stream which leaves something out gave its receiver: such a stream's place says nothing of what lies
 * before it. Kept as long as what refers to the decision.
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
