/**
 * Indexes by which maintenance finds the few rows to delete among all that are kept: notifications that are not shown,
 * delivered messages of single streams, receipts of commands whose results are not kept.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Reads some gigabytes, once.
  `set local statement_timeout = '5min'`,
  `create index notifications_hidden on notifications (created_at) where not shown`,
  `create index lifecycle_stream_messages_delivered on lifecycle_stream_messages (delivered_at)
    where delivered_at is not null`,
  `create index idempotency_receipts_ending on idempotency_receipts (created_at)
    where path = '/v1/me/link-proofs' or path like '/v1/me/credential-actions%'`,
  `set local statement_timeout = '60s'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
