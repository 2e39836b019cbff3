/**
 * Room on their own pages for the updates of deliveries. A batch settles its pages whole, before what it replaces can be
 * reused: of a page that was 70 % full a third of the updates stayed on it, and the others wrote two index entries each.
 * Pages that are there already keep what they have.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`do $$
    declare part regclass;
    begin
      for part in select inhrelid::regclass from pg_inherits where inhparent = 'deliveries'::regclass loop
        execute format('alter table %s set (fillfactor = 40)', part);
      end loop;
    end $$`)
})
