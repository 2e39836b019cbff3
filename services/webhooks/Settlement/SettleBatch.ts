/**
 * Settles a batch of results of all kinds: delivered ones by one statement, the others by a second one, each in its own
 * transaction. A dead letter is announced in the transaction that writes it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { few } from "../Deliveries/CreateDeliveries.ts"
import type { RetrySchedule } from "../RetrySchedule.ts"
import type { Result } from "../Sender/Task.ts"
import { announceDeadLetters, type Announcing } from "./DeadLetterNotices.ts"
import { settleDelivered } from "./SettleDelivered.ts"
import { decide, type Decision, type Settled } from "./SettlementDecision.ts"
import { settleUndelivered } from "./SettleUndelivered.ts"

export interface BatchOptions extends Announcing {
  /** For few results. */
  readonly quick: PgClient.PgClient
  readonly schedule: RetrySchedule
}

/** Settles decisions of which none is `delivered`; returns those whose claim was still the row's. */
const settleOthers = Effect.fnUntraced(function* (
  options: BatchOptions,
  own: PgClient.PgClient,
  decisions: ReadonlyArray<Decision>,
  now: number,
): Effect.fn.Return<ReadonlyArray<Settled>, SqlError.SqlError> {
  const rows = yield* decisions.some(({ next }) => next === "dead")
    ? settleUndelivered(options.sql, decisions, now).pipe(
      Effect.tap((rows) => announceDeadLetters(options, rows.filter(({ next }) => next === "dead"))),
      options.sql.withTransaction,
    )
    : settleUndelivered(own, decisions, now)
  const nextById = new Map(rows.map(({ delivery_id, next }) => [delivery_id, next]))
  return decisions.filter(({ next, result }) => nextById.get(result.task.deliveryId) === next)
})

/** Settles results; returns those whose claim was still the row's, each with what became of its delivery. */
export const settleBatch = Effect.fnUntraced(function* (
  options: BatchOptions,
  results: ReadonlyArray<Result>,
): Effect.fn.Return<ReadonlyArray<Settled>, SqlError.SqlError> {
  const own = results.length < few ? options.quick : options.sql
  const now = yield* Clock.currentTimeMillis
  const delivered: Array<Result> = []
  const others: Array<Decision> = []
  for (const result of results) {
    const decision = decide(options.schedule, result, now, Math.random())
    if (decision.next === "delivered") delivered.push(result)
    else others.push(decision)
  }
  const ended = yield* settleOthers(options, own, others, now)
  const arrived = yield* settleDelivered(own, delivered)
  return [...ended, ...arrived.map((result): Settled => ({ result, next: "delivered" }))]
})
