/**
 * Measures the time from an event's decision until it is signed, delivered to a consumer by any way, and acknowledged:
 * as histograms of this process, as counts that are kept with each consumer, and as spans of the request that decided.
 * (The time from the signature to the broker's acknowledgement is measured by the outbox.)
 */
import { type Context, Effect, Metric } from "effect"
import { shownFromStart } from "../platform/observability/ShownMetrics.ts"
import { note } from "../platform/observability/Traces.ts"

/** The way by which a message was delivered to its consumer. */
export type Way = "cursor" | "push" | "poll"

/** The times of a delivered message: when it was decided and signed, and the trace of the request that decided. */
export interface Travelled {
  readonly jti: string
  readonly decided_at: Date | null
  readonly signed_at: Date
  readonly traceparent: string | null
}

const boundaries = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400]
const histogram = (name: string, description: string) =>
  Metric.histogram(`bailiwick_lifecycle_${name}_seconds`, { description, boundaries })

const signed = histogram("decision_to_signed", "From a decision to its signed message")
const delivered = histogram("decision_to_delivered", "From a decision to a consumer that has the message, by way")
const acknowledged = histogram("decision_to_acknowledged", "From a decision to its acknowledgement after a commit")
const ways = {
  cursor: Metric.withAttributes(delivered, { way: "cursor" }),
  push: Metric.withAttributes(delivered, { way: "push" }),
  poll: Metric.withAttributes(delivered, { way: "poll" }),
} as const satisfies Record<Way, unknown>

/** Shows the metrics of a process that signs events. */
export const signerMetrics = shownFromStart([signed])
/** Shows the metrics of a process whose consumers read and acknowledge events. */
export const consumerMetrics = shownFromStart([ways.cursor, ways.poll, acknowledged])

/** Updates a histogram without an effect for each message, since a page has a thousand of them. */
const observe = (metric: Metric.Histogram<number>, times: ReadonlyArray<Date | null>, now: number) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => {
      for (const at of times) if (at !== null) metric.updateUnsafe(Math.max(0, now - at.getTime()) / 1_000, context)
    })
  )

/** Records that the messages of these decisions were signed and stored at `now` (milliseconds since 1970). */
export const measureSigned = (decidedAt: ReadonlyArray<Date>, now: number): Effect.Effect<void> =>
  observe(signed, decidedAt, now)

/** Records that messages were delivered to a consumer. */
export const measureDelivered = Effect.fnUntraced(function* (
  way: Way,
  messages: ReadonlyArray<Travelled>,
  now: number,
) {
  yield* observe(ways[way], messages.map(({ decided_at }) => decided_at), now)
  for (const { jti, traceparent } of messages) {
    if (traceparent === null) continue
    yield* note("lifecycle.deliver", traceparent, { "lifecycle.way": way, "lifecycle.event_id": jti })
  }
})

/** Records that messages were acknowledged by a product that committed them. */
export const measureAcknowledged = Effect.fnUntraced(function* (messages: ReadonlyArray<Travelled>, now: number) {
  yield* observe(acknowledged, messages.map(({ decided_at }) => decided_at), now)
  for (const { jti, traceparent } of messages) {
    if (traceparent === null) continue
    yield* note("lifecycle.acknowledge", traceparent, { "lifecycle.event_id": jti })
  }
})

const steps = 48

/**
 * A histogram of durations, in buckets of powers of the square root of two milliseconds; the SQL function
 * `lifecycle_counted` adds two histograms.
 */
export const countsOf = (millis: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts = Array.from({ length: steps }, () => 0)
  for (const ms of millis) counts[Math.min(steps - 1, Math.max(0, Math.ceil(2 * Math.log2(Math.max(1, ms)))))]! += 1
  return counts
}

/** The 99th percentile in milliseconds, as exact as the buckets are; null where nothing was counted. */
export const p99Of = (counts: ReadonlyArray<number>): number | null => {
  const all = counts.reduce((sum, n) => sum + n, 0)
  if (all === 0) return null
  let seen = 0
  const at = counts.findIndex((n) => (seen += n) >= all * 0.99)
  return Math.round(2 ** (at / 2))
}
