/** What operators list: rejected messages and mails by their state, newest first, and projects whose rollout is held. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index intake_rejects_listed on intake_rejects (state, received_at desc, id desc) where state <> 'resolved'`,
  `create index mails_listed on mails (state, id desc) where state in ('pending', 'failed', 'unknown')`,
  `create index projects_rollout on projects (id) where rollout is not null`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
