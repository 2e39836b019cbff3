/** The durations of attempts by powers of two, for the median and the 99th percentile of statistics. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Rows from before the column tell an average of all durations: they count as what their average is.
  yield* sql.unsafe("alter table delivery_minutes add column ms_octave smallint")
})
