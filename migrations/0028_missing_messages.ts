/**
 * The state with which a held installation compares the streams: how far each had come when this database last knew it,
 * whether it went back since, and where each project's history ended before the epoch began. `missing` lists the
 * missing messages.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table installation add column told jsonb not null default '{}', add column missing jsonb not null default '[]'`,
  `alter table relay_streams add column went_back_to bigint`,
  `alter table lifecycle_heads add column was_epoch integer, add column was_position bigint, add column was_digest text`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
