/**
 * How long an event takes from its decision: until it is signed, has come to a consumer by whatever way, and is
 * acknowledged. As histograms of this process (from its signature to the broker's acknowledgement it is the outbox's), as
 * counts that are kept with each consumer, and as spans of the request that decided.
 */
import { type Context, Effect, Metric } from "effect"
import { note } from "../platform/observability/Traces.ts"

/** How a message came to its consumer. */
export type Way = "cursor" | "push" | "poll"

/** A message that has gone somewhere: where it stands, when it was decided and signed, and for whose trace. */
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

/** A page is a thousand of them: no effect for each. */
const observe = (metric: Metric.Histogram<number>, times: ReadonlyArray<Date | null>, now: number) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => {
      for (const at of times) if (at !== null) metric.updateUnsafe(Math.max(0, now - at.getTime()) / 1_000, context)
    })
  )

/** Messages of these decisions are signed and stored, at `now` (milliseconds since the epoch). */
export const measureSigned = (decidedAt: ReadonlyArray<Date>, now: number): Effect.Effect<void> =>
  observe(signed, decidedAt, now)

/** Messages are with a consumer. */
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

/** Messages are acknowledged by a product that committed them. */
export const measureAcknowledged = Effect.fnUntraced(function* (messages: ReadonlyArray<Travelled>, now: number) {
  yield* observe(acknowledged, messages.map(({ decided_at }) => decided_at), now)
  for (const { jti, traceparent } of messages) {
    if (traceparent === null) continue
    yield* note("lifecycle.acknowledge", traceparent, { "lifecycle.event_id": jti })
  }
})

const steps = 48

/** Durations counted by powers of the square root of two, in milliseconds: what `lifecycle_counted` adds up. */
export const countsOf = (millis: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts = Array.from({ length: steps }, () => 0)
  for (const ms of millis) counts[Math.min(steps - 1, Math.max(0, Math.ceil(2 * Math.log2(Math.max(1, ms)))))]! += 1
  return counts
}

/** What 99 of 100 took at most, in milliseconds, as exact as the counts are; null where nothing was counted. */
export const p99Of = (counts: ReadonlyArray<number>): number | null => {
  const all = counts.reduce((sum, n) => sum + n, 0)
  if (all === 0) return null
  let seen = 0
  const at = counts.findIndex((n) => (seen += n) >= all * 0.99)
  return Math.round(2 ** (at / 2))
}
