/** Metrics of deliveries, updated once per batch. */
import { type Context, Effect, Metric } from "effect"
import { millisOf } from "../../platform/Ids.ts"
import { shownFromStart, shownWith } from "../../platform/observability/ShownMetrics.ts"
import type { Result } from "../Sender/Task.ts"
import type { Next, Settled } from "../Settlement/SettlementDecision.ts"
import type { Acceptance } from "./CreateDeliveries.ts"

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

const firstAnswers = Metric.histogram("bailiwick_delivery_first_answer_seconds", {
  description: "From the acceptance of an event to the end of a delivery's first attempt, by what the receiver did",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
})
const firstAnswersBy = {
  delivered: Metric.withAttributes(firstAnswers, { outcome: "delivered" }),
  refused: Metric.withAttributes(firstAnswers, { outcome: "refused" }),
  silent: Metric.withAttributes(firstAnswers, { outcome: "silent" }),
} as const

/** Shows these metrics, at zero, in a process that delivers. */
export const deliveryMetrics = Effect.all([
  shownWith(events, "outcome", ["accepted", "duplicate", "waiting"]),
  shownWith(attempts, "outcome", ["delivered", "retry", "dead", "released", "interrupted"] satisfies Array<Next>),
  shownFromStart([deliveries, claimed, unsettled, unsettledAge, ...Object.values(firstAnswersBy)]),
], { discard: true })

export const countAccepted = ({ deliveries: made, duplicates, unknown }: Acceptance, taken: number) =>
  Effect.all([
    Metric.update(Metric.withAttributes(events, { outcome: "accepted" }), taken - duplicates - unknown.length),
    Metric.update(Metric.withAttributes(events, { outcome: "duplicate" }), duplicates),
    Metric.update(Metric.withAttributes(events, { outcome: "waiting" }), unknown.length),
    Metric.update(deliveries, made),
  ], { discard: true })

/** The first attempt of a delivery's first cycle has ended. A replay begins another cycle, long after the event. */
const isFirstAnswer = ({ ending, task }: Result) =>
  task.cycle === 1 && task.attempt === 1 && (ending === "answered" || ending === "silent")

/** Measures first attempts. A delivery's id has the time at which its event was accepted. */
export const measureFirstAnswers = (settled: ReadonlyArray<Settled>) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => {
      for (const { next, result } of settled) {
        if (!isFirstAnswer(result)) continue
        const outcome = next === "delivered" ? next : result.ending === "answered" ? "refused" : "silent"
        const millis = result.startedAt + result.durationMs - millisOf(result.task.deliveryId)
        firstAnswersBy[outcome].updateUnsafe(Math.max(0, millis) / 1_000, context)
      }
    })
  )

export const countSettled = (outcomes: ReadonlyMap<Next, number>, load: number) =>
  Effect.andThen(
    Effect.forEach(outcomes, ([outcome, n]) => Metric.update(Metric.withAttributes(attempts, { outcome }), n), {
      discard: true,
    }),
    Metric.update(claimed, load),
  )

export const gaugeUnsettled = (count: number, ageMillis: number) =>
  Effect.andThen(Metric.update(unsettled, count), Metric.update(unsettledAge, ageMillis / 1_000))
