/** Metrics that are shown before they move: a rate or an alert needs the value before the first event. */
import { Effect, Metric } from "effect"

/** Shows these metrics, at zero until they move. */
export const shownFromStart = (metrics: ReadonlyArray<Metric.Metric<never, unknown>>): Effect.Effect<void> =>
  Effect.forEach(metrics, (metric) => Metric.value(metric), { discard: true })

/** Shows a metric with each of these values of one label. */
export const shownWith = (metric: Metric.Metric<never, unknown>, label: string, values: ReadonlyArray<string>) =>
  shownFromStart(values.map((value) => Metric.withAttributes(metric, { [label]: value })))
