/** A program whose database lacks a table. */
import { Effect } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"

/** Runs `use` while a table has another name. */
export const without = <A, E, R>(table: string, use: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Database, ({ owner }) =>
    Effect.acquireUseRelease(
      owner`alter table ${owner(table)} rename to ${owner(`${table}_away`)}`,
      () => use,
      () => Effect.orDie(owner`alter table ${owner(`${table}_away`)} rename to ${owner(table)}`),
    ))
