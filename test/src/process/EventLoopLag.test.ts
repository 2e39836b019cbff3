import { assert, it } from "@effect/vitest"
import { Effect, Layer, Metric, Schedule } from "effect"
import { measuredEventLoop } from "../../../src/process/EventLoopLag.ts"

it.live("a blocked event loop is measured", () =>
  Effect.gen(function* () {
    yield* Layer.build(measuredEventLoop)
    const largest = Effect.map(Metric.snapshot, (all) => {
      const found = all.find(({ id }) => id === "bailiwick_event_loop_lag_seconds")
      return found?.type === "Histogram" ? found.state.max : 0
    })
    const blocked = Effect.sync(() => {
      const end = performance.now() + 400
      while (performance.now() < end);
    })
    const seen = yield* Effect.andThen(blocked, largest).pipe(
      Effect.repeat({ schedule: Schedule.spaced("10 millis"), until: (lag) => lag >= 0.2 }),
    )
    assert.isAtLeast(seen, 0.2)
  }).pipe(Effect.scoped), 30_000)
