/**
 * A number on each account that is another after every change of a webhook that may listen: what a program remembers of them
 * is so as long as the number is. A trigger changes it, so that processes of the last version do, too. It is drawn, not
 * counted: after a fail-over that lost a change, the next one would get a number that a process remembers already.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table accounts add column listeners bigint not null default 1`,
  `create function listeners_changed() returns trigger language plpgsql as $$
  begin
    update accounts set listeners = 2 + floor(random() * 9e15)::bigint where id = coalesce(new.account_id, old.account_id);
    return null;
  end $$`,
  `create trigger webhooks_listen after insert or update of account_id, url, events, is_active, version, deleted_at on webhooks
    for each row execute function listeners_changed()`,
  // Webhooks that were deleted by their owner listen to nothing when their rows go.
  `create trigger webhooks_gone after delete on webhooks
    for each row when (old.deleted_at is null) execute function listeners_changed()`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
