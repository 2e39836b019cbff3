/**
 * Stores the first attempt of a delivery that succeeded at once in the delivery's own row: nearly all deliveries have
 * this one attempt only. The table `attempts` has failed and repeated attempts, and all attempts of earlier days.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table deliveries
    add column first_started_at timestamptz,
    add column first_duration_ms integer,
    add column first_response_status integer`
})
