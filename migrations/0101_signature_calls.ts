/** Reviews whose signers are to be told that they wait, and when the program looks next for people who may sign. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table signature_calls (
    review_id uuid primary key,
    -- A policy review, or a review of an Access.
    kind text not null check (kind in ('policy', 'access')),
    due_at timestamptz not null
  ) with (fillfactor = 80)`,
  `create index signature_calls_due on signature_calls (due_at)`,
  // Reviews that wait already.
  `insert into signature_calls (review_id, kind, due_at)
    select id, 'policy', 'epoch'::timestamptz from policy_reviews where state = 'open'
    union all select id, 'access', 'epoch'::timestamptz from access_reviews where state = 'proposed'`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
