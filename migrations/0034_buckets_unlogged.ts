/**
 * Takes the buckets of generous limits out of the write-ahead log: a crash of the server empties the table, and every
 * bucket is full again. A request whose account draws tokens no longer waits for the disk.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table rate_buckets set unlogged`
})
