/**
 * Indexes made after the rows: a fill of ten million rows wrote each entry of each index at a random place, and took ten
 * times as long as the sorted build.
 */
import { Effect } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"

/** Without the indexes of constraints, which the fill's own references need, and those that a partition has of its table. */
const secondary = Effect.flatMap(Database, ({ owner }) =>
  owner<{ name: string; definition: string }>`
    select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class t on t.oid = i.indrelid
    where t.relnamespace = current_schema()::regnamespace
      and not exists (select from pg_constraint c where c.conindid = i.indexrelid)
      and not exists (select from pg_inherits h where h.inhrelid = i.indexrelid)`)

/** Runs `fill` without the tables' secondary indexes, makes them anew, and takes statistics. */
export const withLateIndexes = <A, E, R>(fill: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    const indexes = yield* secondary
    for (const { name } of indexes) yield* owner`drop index ${owner.literal(name)}`
    yield* fill
    // The owner has one connection.
    yield* owner`set maintenance_work_mem = '512MB'`
    // A partitioned table's index is made for its partitions, too.
    for (const { definition } of indexes) yield* owner`${owner.literal(definition.replace(" ON ONLY ", " ON "))}`
    yield* owner`analyze`
  })
