/**
 * Two indexes of the audit go: nothing looks for records by their actor, and those of a subject are found by the index of
 * its object (services/platform/observability/AuditIndexes.ts). Every change in the program writes records.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `drop index if exists audit_records_actor`,
  `drop index if exists audit_records_subject`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
