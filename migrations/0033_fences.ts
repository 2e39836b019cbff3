/**
 * What a fenced write needs (services/platform/database/FencedWrite.ts): a statement that refuses itself, and on
 * accounts the counter that each write raises which adds to what counts against an account's limit of domains.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Raised as a serialization failure, which is what it is: the statement's transaction ends and nothing of it is kept.
  `create function fences_hold(unchanged bigint, wanted bigint) returns boolean language plpgsql stable as $$
    begin
      if unchanged is distinct from wanted then
        raise exception 'a row is no longer as it was loaded' using errcode = 'serialization_failure';
      end if;
      return true;
    end
  $$`,
  `alter table accounts add column arrivals bigint not null default 0`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
