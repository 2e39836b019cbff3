/**
 * Reads of decisions: an institution's projects in the order of their ids, a page at a time, and how often the push of
 * a decision failed.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create index projects_of_institution on projects (institution_id, id) where not removed`,
  // Failed pushes of one decision to one stream, kept as long as the decision. `refused`: the receiver gave a reason;
  // `ambiguous`: no answer, and the receiver may have the event; `taken`: the receiver has it since.
  `create table lifecycle_attempts (
    project_id text not null,
    epoch integer not null,
    position bigint not null,
    stream_id uuid not null,
    -- As lifecycle_consumers names it.
    consumer text not null,
    attempts integer not null,
    last_attempt_at timestamptz not null,
    outcome text not null check (outcome in ('failed', 'refused', 'ambiguous', 'taken')),
    primary key (project_id, epoch, position, stream_id)
  )`,
  `create index lifecycle_attempts_open on lifecycle_attempts (stream_id) where outcome <> 'taken'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
