/** Works off the backfills, one after another; any number of processes may run it. */
import { Effect, Layer, Metric } from "effect"
import { backfilledRows, bite, type Pace, progressOf } from "../../services/platform/database/Backfills.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { gaugedAtScrape } from "../../services/platform/observability/ScrapedGauges.ts"
import { shownFromStart } from "../../services/platform/observability/ShownMetrics.ts"
import { BackfillList } from "../BackfillList.ts"
import { loop } from "./Loop.ts"

/** How often a finished backfill is looked at: a migration begins it anew where rows are left. */
const pollMillis = 10_000

const unfinished = Metric.gauge("bailiwick_backfills_unfinished", { description: "Backfills that are not finished" })

/** Takes a bite of the first backfill that is not finished, and waits as it asks; gives whether there was one. */
export const backfillTurn = (pace: Pace) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    for (const backfill of yield* BackfillList) {
      const wait = yield* bite(sql, backfill, pace)
      if (wait === null) continue
      yield* Effect.sleep(wait)
      return true
    }
    return false
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
