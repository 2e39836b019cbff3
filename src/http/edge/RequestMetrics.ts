/**
 * The histogram `bailiwick_http_request_seconds`: from a request's arrival to the head of its answer, by method, route
 * template and class of status. A raw path never becomes a label, so the label sets are bounded by the program's routes.
 */
import { Clock, Context, Effect, Layer, Metric } from "effect"

/** Begins to measure a request of this method and route template; the given function takes the answer's status. */
export type BeginRequest = (method: string, route: string | null) => (status: number) => void

/** Null, the default, where no metrics are served: requests are not measured then. */
export class RequestMetrics extends Context.Reference<BeginRequest | null>("bailiwick/src/http/edge/RequestMetrics", {
  defaultValue: () => null,
}) {}

const requests = Metric.histogram("bailiwick_http_request_seconds", {
  description: "From a request to the head of its answer, by method, route template and class of status",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
})

/** Others share one label: Node's parser takes more than thirty methods. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** Measures requests. Each label set's metric is made once, since a request should not pay for it. */
export const measuredRequests = Layer.effect(
  RequestMetrics,
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    const clock = yield* Clock.Clock
    const known = new Map<string, Metric.Histogram<number>>()
    const metricOf = (method: string, route: string, status: string) => {
      const key = `${method} ${route} ${status}`
      const found = known.get(key)
      if (found !== undefined) return found
      const made = Metric.withAttributes(requests, { method, route, status })
      known.set(key, made)
      return made
    }
    return (method, route) => {
      const began = clock.currentTimeNanosUnsafe()
      return (status) =>
        metricOf(methods.has(method) ? method : "other", route ?? "unknown", `${Math.floor(status / 100)}xx`)
          .updateUnsafe(Number(clock.currentTimeNanosUnsafe() - began) / 1e9, context)
    }
  }),
)
