/**
 * Admits one open request per identity. A fenced write decides on the rows that it loaded, and two simultaneous
 * requests may have no common row to change: so the inserted row looks for another one, after it has waited for its
 * turn.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create function keep_link_alone() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(
      hashtextextended('link ' || (new.fields ->> 'issuer') || ' ' || (new.fields ->> 'subject'), 0));
    -- In a statement of its own: it sees what was committed while the lock was waited for.
    if exists (
      select from requests r
      where r.kind = 'link' and r.state = 'pending_review' and r.fields ->> 'issuer' = new.fields ->> 'issuer'
        and r.fields ->> 'subject' = new.fields ->> 'subject'
        and (r.effective_at is not null or r.expires_at > new.created_at))
    then
      raise exception 'this identity is asked for already' using errcode = 'serialization_failure';
    end if;
    return new;
  end $$`,
  `create trigger requests_link_alone before insert on requests
    for each row when (new.kind = 'link') execute function keep_link_alone()`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
