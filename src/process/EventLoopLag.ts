/**
 * The histogram `bailiwick_event_loop_lag_seconds`: how late a timer of 100 ms fires. Node's `monitorEventLoopDelay`
 * does not do here: on Deno 2.9.6 it reported 0.2 ms for a loop that was blocked for 300 ms.
 */
import { Clock, Effect, Layer, Metric } from "effect"

const lag = Metric.histogram("bailiwick_event_loop_lag_seconds", {
  description: "How late a timer fires that is due every 100 ms",
  boundaries: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
})

const everyMillis = 100

export const measuredEventLoop = Layer.effectDiscard(
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeNanos
    yield* Effect.sleep(everyMillis)
    const took = Number((yield* Clock.currentTimeNanos) - began) / 1e9
    yield* Metric.update(lag, Math.max(0, took - everyMillis / 1_000))
  }).pipe(Effect.forever, Effect.forkScoped),
)
