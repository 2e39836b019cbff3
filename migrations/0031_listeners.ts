/**
 * A number on each account that changes with every change of a webhook that may listen: a program's memory of the
 * webhooks is valid while the number stays. A trigger changes it, so that processes of the last version do, too. The
 * number is drawn, not counted: after a fail-over that lost a change, a counter would give the next change a number
 * that a process remembers already.
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
  // Webhooks that their owner deleted listen to no events: removing their rows changes nothing.
  `create trigger webhooks_gone after delete on webhooks
    for each row when (old.deleted_at is null) execute function listeners_changed()`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
