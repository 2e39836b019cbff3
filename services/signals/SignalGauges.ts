/** Gauges of the polls of transmitters (docs/metrics.md), read at a scrape. */
import { Clock, Effect, Metric } from "effect"
import { Database } from "../platform/database/Database.ts"
import { gaugedAtScrape, type Reading } from "../platform/observability/ScrapedGauges.ts"
import { pollStatus } from "./SignalPolling.ts"

const behind = Metric.gauge("bailiwick_signal_poll_behind_seconds", {
  description: "For how long a polled identity provider may hold events that were not taken",
})

/** Gauges the polls of these transmitters until the scope ends. */
export const gaugedPolls = Effect.fnUntraced(function* (issuers: ReadonlyArray<string>) {
  const database = yield* Database
  const read = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    return (yield* pollStatus).filter(({ transmitter }) => issuers.includes(transmitter))
      .map(({ emptiedAt, transmitter }): Reading => [
        Metric.withAttributes(behind, { transmitter }),
        emptiedAt === null ? 0 : Math.max(0, now - emptiedAt.getTime()) / 1_000,
      ])
  })
  yield* gaugedAtScrape("signals", Effect.provideService(read, Database, database))
})
