/** Records of refused requests hold many requests each: this index finds a record by the id of each of them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(
    `create index audit_records_gathered on audit_records using gin ((details->'request_ids') jsonb_path_ops)
      where details ? 'request_ids'`,
  )
})
