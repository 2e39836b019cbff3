/**
 * Gauges whose values are read when metrics are read: at a scrape, and before an export. Where a reading fails or takes
 * longer than its bound, its gauges keep their last values, and `bailiwick_reading_age_seconds` says how old these are:
 * an alert on an old reading names the reading, and no gauge disappears because the database is slow.
 */
import { Clock, Context, Effect, Fiber, Metric, type Scope } from "effect"

/** A gauge, with its labels, and its value. */
export type Reading = readonly [gauge: Metric.Gauge<number>, value: number]

/** A scrape waits no longer than this for readings, in milliseconds. */
const boundMillis = 900

const ages = Metric.gauge("bailiwick_reading_age_seconds", {
  description: "How old a reading of gauges is; where none has succeeded yet, for how long it has been asked for",
})

/** The readings of this process. */
export class ScrapedGauges
  extends Context.Reference<Set<Effect.Effect<void>>>("bailiwick/services/platform/observability/ScrapedGauges", {
    defaultValue: () => new Set(),
  }) {}

/**
 * Sets these gauges whenever metrics are read, until the scope ends. Concurrent scrapes share one reading, and none
 * begins while an earlier one, which outlived its scrape, is still under way.
 */
export const gaugedAtScrape = <E>(
  name: string,
  read: Effect.Effect<ReadonlyArray<Reading>, E>,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sources = yield* ScrapedGauges
    const context = yield* Effect.context<never>()
    const fork = Effect.runForkWith(context)
    const age = Metric.withAttributes(ages, { reading: name })
    let shown: ReadonlyArray<Reading> = []
    let running: Fiber.Fiber<void> | null = null
    let since = yield* Clock.currentTimeMillis
    const remove = () => {
      for (const [gauge] of shown) Metric.removeUnsafe(gauge, context)
    }
    const reading = Effect.gen(function* () {
      const began = yield* Clock.currentTimeMillis
      const readings = yield* read
      remove()
      for (const [gauge, value] of readings) gauge.updateUnsafe(value, context)
      shown = readings
      since = began
    }).pipe(Effect.catchCause((cause) => Effect.logDebug("a reading of gauges failed", name, cause)))
    const source = Effect.gen(function* () {
      if (running === null || running.pollUnsafe() !== undefined) running = fork(reading)
      yield* Effect.timeoutOption(Fiber.await(running), boundMillis)
      age.updateUnsafe(((yield* Clock.currentTimeMillis) - since) / 1_000, context)
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => sources.add(source)),
      () =>
        Effect.suspend(() => {
          sources.delete(source)
          return running === null ? Effect.void : Fiber.interrupt(running)
        }).pipe(Effect.ensuring(Effect.sync(() => {
          remove()
          Metric.removeUnsafe(age, context)
        }))),
    )
  })

/** Takes all readings at once, within the bound. */
export const readGauges: Effect.Effect<void> = Effect.flatMap(
  ScrapedGauges,
  (sources) => Effect.forEach([...sources], (source) => source, { concurrency: "unbounded", discard: true }),
)
