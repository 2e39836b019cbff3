/** The backfills that migrations need: one runs only where no row of its table needs them any more. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import {
  type Backfill,
  bite,
  isFilled,
  type Pace,
  progressOf,
  progressText,
} from "../services/platform/database/Backfills.ts"
import { inTurn } from "../services/platform/database/RetryOnLockTimeout.ts"
import { mayPass } from "../services/platform/database/SqlErrors.ts"
import { cliCommand } from "../services/platform/CommandSpelling.ts"

/** A migration needs a backfill that is not finished. */
export class Unfilled extends Schema.TaggedError<Unfilled>()("Unfilled", { message: Schema.String }) {}

/** Refuses or finishes an unfinished backfill that a migration needs. */
export type Filling = (
  owner: PgClient.PgClient,
  backfill: Backfill,
  migration: string,
) => Effect.Effect<void, SqlError.SqlError | Unfilled>

/** Fails where the backfill is not finished: the processes of the version before are at it. */
export const refuseUnfilled: Filling = Effect.fnUntraced(function* (owner, backfill, migration) {
  const [progress] = yield* progressOf(owner, backfill.name)
  return yield* new Unfilled({
    message:
      `migration ${migration} needs a backfill that is not finished, ${
        progressText(progress!)
      }: leave the version before running until "${cliCommand("doctor")}" says that it is finished, or type ` +
      `"${cliCommand("migrate")}", which finishes it`,
  })
})

/** A bite that fails on what it does, and not on a lock or on the server's state, would fail again. */
const refusedBite = (owner: PgClient.PgClient, backfill: Backfill, migration: string) => (error: SqlError.SqlError) =>
  mayPass(error) ? Effect.fail(error) : Effect.flatMap(
    progressOf(owner, backfill.name),
    ([progress]) =>
      Effect.fail(
        new Unfilled({ message: `migration ${migration} needs a backfill that fails, ${progressText(progress!)}` }),
      ),
  )

/** The second walk changes what an older program wrote behind the first; more walks would change nothing more. */
const mostWalks = 2

/**
 * Runs the backfill to its end, at its pace, and tells of each bite. A bite waits for rows that commands hold. Fails where
 * rows are left that the backfill does not change.
 */
export const fillNow = (pace: Pace, tell: (text: string) => Effect.Effect<void>): Filling =>
  Effect.fnUntraced(function* (owner, backfill, migration) {
    const next = Effect.catch(inTurn(bite(owner, backfill, pace)), refusedBite(owner, backfill, migration))
    for (let walks = 0; walks < mostWalks; walks++) {
      for (let wait = yield* next; wait !== null; wait = yield* next) {
        const [progress] = yield* progressOf(owner, backfill.name)
        yield* tell(progressText(progress!))
        yield* Effect.sleep(wait)
      }
      if (yield* inTurn(isFilled(owner, backfill))) return
    }
    return yield* new Unfilled({
      message: `migration ${migration} needs the backfill ${backfill.name}, which has walked the table ${mostWalks} ` +
        "times and leaves rows that it does not change: look at them, or stop the program that still writes them",
    })
  })

/** Meets the needs of a migration: asks the table of each backfill for rows that are left, and fills where there are. */
export const meet = Effect.fnUntraced(function* (
  owner: PgClient.PgClient,
  needs: ReadonlyArray<Backfill>,
  fill: Filling,
  migration: string,
) {
  for (const backfill of needs) {
    if (!(yield* inTurn(isFilled(owner, backfill)))) yield* fill(owner, backfill, migration)
  }
})
