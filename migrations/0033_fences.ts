/**
 * Functions for fenced writes (services/platform/database/FencedWrite.ts): a statement that refuses itself, and on
 * accounts a counter that is raised by each write that adds to an account's number of domains.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Raised as a serialization failure, which it is: the transaction ends, and no part of the statement is kept.
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
