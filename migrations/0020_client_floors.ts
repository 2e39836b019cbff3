/** Cut-off times of clients: earlier sign-ins through a client are dead, also those of sessions without a row. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table client_floors (client_id text primary key, before timestamptz not null)`
})
