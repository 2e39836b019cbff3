/** Receipts of the mail API's idempotency keys, by age: they are kept for some days (ReceiptRetention.ts). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statement = `create index idempotency_receipts_of_accounts on idempotency_receipts (created_at)
  where principal like 'account:%'`

export default Effect.gen(function* () {
  yield* (yield* SqlClient.SqlClient).unsafe(statement)
})
