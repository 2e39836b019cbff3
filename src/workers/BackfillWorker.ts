/** Works off the backfills, one after another; any number of processes may run it. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Metric } from "effect"
import {
  type Backfill,
  backfilledRows,
  bite,
  type Pace,
  progressOf,
} from "../../services/platform/database/Backfills.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { reasonOf } from "../../services/platform/database/SqlErrors.ts"
import { gaugedAtScrape } from "../../services/platform/observability/ScrapedGauges.ts"
import { shownFromStart } from "../../services/platform/observability/ShownMetrics.ts"
import { BackfillList } from "../BackfillList.ts"
import { loop } from "./Loop.ts"

/** How often a finished backfill is looked at: a migration begins it anew where rows are left. */
const pollMillis = 10_000

const unfinished = Metric.gauge("bailiwick_backfills_unfinished", { description: "Backfills that are not finished" })

/** A bite that fails is logged, and its row says when the next one may begin. */
const failedMillis = 1_000

const tried = (sql: PgClient.PgClient, backfill: Backfill, pace: Pace) =>
  Effect.catch(
    bite(sql, backfill, pace),
    (error) =>
      Effect.as(Effect.logWarning(`a bite of the backfill ${backfill.name} failed`, reasonOf(error)), failedMillis),
  )

/**
 * Takes a bite of the first backfill that is not finished, and waits as it asks; gives whether there was one. One whose last
 * bite failed is tried when its time has come, and holds up none of those behind it.
 */
export const backfillTurn = (pace: Pace) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const failing: Array<number> = []
    for (const backfill of yield* BackfillList) {
      const wait = yield* tried(sql, backfill, pace)
      if (wait === null) continue
      const [progress] = yield* progressOf(sql, backfill.name)
      if (progress!.lastError === null) {
        yield* Effect.sleep(wait)
        return true
      }
      failing.push(wait)
    }
    if (failing.length === 0) return false
    yield* Effect.sleep(Math.min(...failing))
    return true
  })

export const BackfillWorker = {
  layer: (pace: Pace) =>
    Layer.effectDiscard(Effect.gen(function* () {
      const { sql } = yield* Database
      yield* shownFromStart([backfilledRows])
      yield* gaugedAtScrape(
        "backfills",
        Effect.map(progressOf(sql), (all) => [[unfinished, all.filter(({ done }) => !done).length]] as const),
      )
      if ((yield* BackfillList).length === 0) return
      yield* loop("backfills", { wait: (max) => Effect.sleep(max) }, pollMillis, backfillTurn(pace))
    })),
}
