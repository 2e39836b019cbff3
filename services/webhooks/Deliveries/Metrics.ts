/** Metrics of deliveries, updated once per batch. */
import { Effect, Metric } from "effect"
import type { Acceptance } from "./CreateDeliveries.ts"
import type { Next } from "../Settlement/SettlementDecision.ts"

const events = Metric.counter("bailiwick_mail_events_total", { description: "Email events by what became of them" })
const deliveries = Metric.counter("bailiwick_deliveries_total", { description: "Deliveries made of events" })
const attempts = Metric.counter("bailiwick_delivery_attempts_total", { description: "Settled claims by outcome" })
const claimed = Metric.gauge("bailiwick_deliveries_claimed", { description: "Deliveries in this process's memory" })
const unsettled = Metric.gauge("bailiwick_deliveries_unsettled", {
  description: "Results in this process's memory that are not settled",
})
const unsettledAge = Metric.gauge("bailiwick_deliveries_unsettled_age_seconds", {
  description: "How long the oldest result that is not settled has been in this process's memory",
})

export const countAccepted = ({ deliveries: made, duplicates, unknown }: Acceptance, taken: number) =>
  Effect.all([
    Metric.update(Metric.withAttributes(events, { outcome: "accepted" }), taken - duplicates - unknown.length),
    Metric.update(Metric.withAttributes(events, { outcome: "duplicate" }), duplicates),
    Metric.update(Metric.withAttributes(events, { outcome: "waiting" }), unknown.length),
    Metric.update(deliveries, made),
  ], { discard: true })

export const countSettled = (outcomes: ReadonlyMap<Next, number>, load: number) =>
  Effect.andThen(
    Effect.forEach(outcomes, ([outcome, n]) => Metric.update(Metric.withAttributes(attempts, { outcome }), n), {
      discard: true,
    }),
    Metric.update(claimed, load),
  )

export const gaugeUnsettled = (count: number, ageMillis: number) =>
  Effect.andThen(Metric.update(unsettled, count), Metric.update(unsettledAge, ageMillis / 1_000))
