/** Sign-ins by way of a client that are dead, sessions that nobody has written down yet among them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table client_floors (client_id text primary key, before timestamptz not null)`
})
