/**
 * A backup that was taken between two statements of a migration: its rows have the columns of the statements that had
 * committed. The schema for them is made the same way, and the next start goes on after these statements.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Migration } from "../../Migrations.ts"
import { runFirstSteps } from "../../MigrationSteps.ts"
import { CliFault } from "../CliFault.ts"
import type { Unfinished } from "./Format.ts"

/** Runs the statements that had committed when the backup was made. */
export const beginUnfinished = Effect.fn("UnfinishedMigration.begin")(function* (
  owner: PgClient.PgClient,
  list: ReadonlyArray<Migration>,
  { migration, steps }: Unfinished,
) {
  const [, name, work] = list.find(([id]) => id === migration) ?? []
  if (name === undefined || work === undefined || Effect.isEffect(work) || steps > work.length) {
    return yield* new CliFault({
      message:
        `the backup was made while a newer version applied its migration ${migration}: restore it with that version`,
    })
  }
  yield* runFirstSteps(owner, { id: migration, name, statements: work }, steps)
})
