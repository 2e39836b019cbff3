/**
 * Gauges whose values are read when metrics are read: at a scrape, and before an export. A reading that fails or takes
 * longer than its bound leaves its gauges out, since an old value would look like a current one; the other metrics are
 * answered all the same.
 */
import { Context, Effect, Fiber, Metric, Option, type Scope } from "effect"

/** A gauge, with its labels, and its value. */
export type Reading = readonly [gauge: Metric.Gauge<number>, value: number]

/** A scrape waits no longer than this for readings, in milliseconds. */
const boundMillis = 900

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
  read: Effect.Effect<ReadonlyArray<Reading>, E>,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sources = yield* ScrapedGauges
    const context = yield* Effect.context<never>()
    const fork = Effect.runForkWith(context)
    let shown: ReadonlyArray<Reading> = []
    let running: Fiber.Fiber<void> | null = null
    const show = (readings: ReadonlyArray<Reading>) => {
      for (const [gauge] of shown) Metric.removeUnsafe(gauge, context)
      for (const [gauge, value] of readings) gauge.updateUnsafe(value, context)
      shown = readings
    }
    const reading = Effect.matchCause(read, { onSuccess: show, onFailure: () => show([]) })
    const source = Effect.suspend(() => {
      if (running === null || running.pollUnsafe() !== undefined) running = fork(reading)
      return Effect.map(Effect.timeoutOption(Fiber.await(running), boundMillis), (ended) => {
        if (Option.isNone(ended)) show([])
      })
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => sources.add(source)),
      () =>
        Effect.suspend(() => {
          sources.delete(source)
          return running === null ? Effect.void : Fiber.interrupt(running)
        }).pipe(Effect.ensuring(Effect.sync(() => show([])))),
    )
  })

/** Takes all readings at once, within the bound. */
export const readGauges: Effect.Effect<void> = Effect.flatMap(
  ScrapedGauges,
  (sources) => Effect.forEach([...sources], (source) => source, { concurrency: "unbounded", discard: true }),
)
