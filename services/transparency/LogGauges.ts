/** Gauges of the transparency log (docs/metrics.md), read at a scrape. */
import { Clock, Effect, Metric } from "effect"
import { Database } from "../platform/database/Database.ts"
import { gaugedAtScrape, type Reading } from "../platform/observability/ScrapedGauges.ts"
import { logStatus } from "./DecisionLog.ts"
import { witnessStatus } from "./Witnesses.ts"

const gauge = (name: string, description: string) => Metric.gauge(`bailiwick_decision_log_${name}`, { description })
const entries = gauge("entries", "Entries of the transparency log")
const published = gauge("published_entries", "Entries in the checkpoint that is served")
const oldest = gauge(
  "oldest_waiting_seconds",
  "Age of the oldest decision that is in no published checkpoint, 0 where none waits",
)
const held = gauge("held", "1 where the log gets no new checkpoint, otherwise 0")
const cosigned = gauge("cosigned_entries", "Entries in the newest checkpoint that a witness has cosigned")

/** Gauges the log until the scope ends. */
export const gaugedLog = Effect.gen(function* () {
  const database = yield* Database
  const read = Effect.gen(function* () {
    const status = yield* logStatus
    if (status === null) return []
    const since = status.waitingSince?.getTime() ?? null
    const now = yield* Clock.currentTimeMillis
    const readings: ReadonlyArray<Reading> = [
      [entries, status.size],
      [published, status.published ?? 0],
      [oldest, since === null ? 0 : Math.max(0, now - since) / 1_000],
      [held, status.held === null ? 0 : 1],
      ...(yield* witnessStatus).map(({ cosigned: size, name }): Reading => [
        Metric.withAttributes(cosigned, { witness: name }),
        size ?? 0,
      ]),
    ]
    return readings
  })
  yield* gaugedAtScrape("decision-log", Effect.provideService(read, Database, database))
})
