/**
 * Remembered events by the time that their ids carry, a partition a day: what arrives now lies together, and a day is
 * forgotten by dropping its partition. Ids that carry no time are together by themselves. `seen_events` stays as it is:
 * what it remembers is looked up until its retention is over; notifications go on using it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table seen_ids (
    key uuid primary key,
    seen_on date not null
  ) partition by range (key)`,
  `create table seen_ids_timeless partition of seen_ids
    for values from (minvalue) to ('00000000-0001-0000-0000-000000000000')`,
  `create table seen_ids_default partition of seen_ids default`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
