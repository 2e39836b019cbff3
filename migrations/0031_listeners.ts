/**
 * A number on each account that moves with every change of a webhook that may listen: what a program remembers of them is
 * so as long as the number is. A trigger moves it, so that processes of the last version do, too.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `alter table accounts add column listeners bigint not null default 1`,
  `create function listeners_changed() returns trigger language plpgsql as $$
  begin
    update accounts set listeners = listeners + 1 where id = coalesce(new.account_id, old.account_id);
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
