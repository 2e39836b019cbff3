/**
 * Remembers events by the time in their ids, one partition per day: recent ids lie together, and a day is forgotten by
 * dropping its partition. Ids without a time have a partition of their own. `seen_events` stays as it is: its ids are
 * looked up until their retention is over, and notifications still use it.
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
