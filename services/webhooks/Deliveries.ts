/**
 * Deliveries: claim, send, settle. Nothing is POSTed that the database did not claim first, nothing counts that the
 * claim does not fence, and a claim that nobody settles is free again when its lease is over.
 *
 * Killed before the commit of `accept`: the broker hands the events out again. Killed after it, or anywhere up to the
 * settlement: the claims expire and the deliveries are sent again, under the same `webhook-id`. Nothing is lost; what was
 * in flight may arrive twice.
 */
import { Clock, Context, Effect, Latch, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Bus } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { accept, acceptAll, type Acceptance, type Accepted, few } from "./Deliveries/CreateDeliveries.ts"
import { announceDue, type Announcement, inTurns } from "./Deliveries/DeliveryClaims.ts"
import { deadLetterNotices } from "./Deliveries/DeadLetterNotices.ts"
import { makeFeed } from "./Deliveries/BacklogClaims.ts"
import { countAccepted, countSettled } from "./Deliveries/Metrics.ts"
import { AttemptReports } from "./Deliveries/AttemptReports.ts"
import { type Next, settle, type Settled } from "./Deliveries/SettleAttempts.ts"
import { isDelivered, settleDelivered } from "./Deliveries/SettleDelivered.ts"
import { makeSettlement } from "./Deliveries/Settlement.ts"
import { Endpoints } from "./Endpoints.ts"
import { Listeners } from "./Listeners.ts"
import type { RetrySchedule } from "./RetrySchedule.ts"
import { leaseMillis, Sender, type SenderConfig } from "./Sender.ts"
import { releasedOf, type Result } from "./Sender/Task.ts"

export type { Acceptance, Accepted } from "./Deliveries/CreateDeliveries.ts"
export type { Announcement } from "./Deliveries/DeliveryClaims.ts"

export interface DeliveriesConfig extends SenderConfig {
  readonly schedule: RetrySchedule
}

/** The bell that says that deliveries are due. */
export const dueTopic = "deliveries"

/** Deliveries that are to find room before more events are taken in: a batch of them, and some. */
const intakeRoom = 700
/** The same while there is a backlog, which may use three quarters of all claims: some of it goes before newer events. */
const backlogRoom = 1_400
/** Answers within one wait, from which on the bus keeps events better than the queue does: it will be their turn soon. */
const manyAnswers = 100
/** Results, from which on the database is what all wait for. */
const manyUnsettled = 1_024
const longestLooks = 40
const reportEveryMillis = 200
/** The longest that a scan for due retries lets wait for itself; sooner ones wake it. */
export const scanEveryMillis = 1_000
const lanesAScan = 256
/** Deliveries an announcement. */
const announced = 100
const announcedAgainMillis = 30_000

export class Deliveries extends Context.Service<Deliveries, {
  /** Takes events in: one transaction, then what was claimed is on its way. */
  readonly accept: (events: ReadonlyArray<Accepted>) => Effect.Effect<Acceptance, SqlError.SqlError>
  /** Looks for due retries and gives what is to be announced, account by account. */
  readonly scan: Effect.Effect<ReadonlyArray<Announcement>, SqlError.SqlError>
  /** Milliseconds until a scan would find something, 0 where it would now, at most `max`. */
  readonly untilDue: (max: number) => Effect.Effect<number, SqlError.SqlError>
  /** Claims what this process has room for of what was announced, and sends it. */
  readonly dispatch: (announcements: ReadonlyArray<Announcement>) => Effect.Effect<void, SqlError.SqlError>
  /** Claims and sends, bite by bite, what is due beyond that, as there is room; for ever, while `mayClaim`. */
  readonly feeding: (mayClaim: Effect.Effect<boolean>) => Effect.Effect<never>
  /** Settles until its scope ends; then gives back what was not begun and waits for what was, up to 5 s. */
  readonly settling: Effect.Effect<void>
  /** Frees claims whose lease is over; gives how many. */
  readonly free: Effect.Effect<number, SqlError.SqlError>
  /**
   * Waits while there is little room: at most `maxMillis`, since slow endpoints must not hold up another's events, or 40
   * times that while receivers answer fast or the database is behind with settlements.
   */
  readonly whileFull: (maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/webhooks/Deliveries") {
  static readonly layer = (config: DeliveriesConfig) =>
    Layer.effect(
      Deliveries,
      Effect.gen(function* () {
        const { quick, sql } = yield* Database
        const bus = yield* Bus
        const bells = yield* WakeUps
        const outbox = yield* Outbox
        const notifications = yield* Notifications
        const endpoints = yield* Endpoints
        const listeners = yield* Listeners
        const sender = yield* Sender
        const { slots } = sender
        const lease = leaseMillis(config)
        const clock = yield* Clock.Clock
        const giveBack = (claims: ReadonlyArray<Result["task"]>) => settlement.add(claims.map(releasedOf))
        const feed = makeFeed({ sql, endpoints, lease, sender, giveBack, announced }, clock)
        let answers = 0
        const impatient = Math.min(...config.schedule.delays) < scanEveryMillis
        const report = new AttemptReports()
        const reported = Latch.makeUnsafe(false)

        sender.onResult((result) => {
          settlement.add([result])
          if (result.ending === "answered") answers++
          feed.look()
        })

        // One step: what was born claimed is the Sender's, and after a stop the Sender gives it back.
        const takeSome = (events: ReadonlyArray<Accepted>, hold: boolean) =>
          feed.reserving((reserve) =>
            accept(
              {
                ...{ sql, quick, endpoints, listeners, lease },
                reserve: (id, account) => reserve(id, account, 1) === 1,
                release: (id) => slots.drop(id, 1),
              },
              events,
              hold,
            )
          ).pipe(
            Effect.tap(() => faultPoint("intake.committed")),
            Effect.tap(({ tasks }) => Effect.sync(() => sender.send(tasks))),
            Effect.uninterruptible,
          )

        const take = Effect.fn("Deliveries.accept")(function* (events: ReadonlyArray<Accepted>) {
          yield* faultPoint("intake.taken")
          const acceptance = yield* acceptAll(takeSome, events)
          if (acceptance.tasks.length > 0) feed.firstTries(acceptance.tasks.length)
          if (acceptance.overflow) yield* bells.ring(dueTopic)
          yield* countAccepted(acceptance, events.length)
          return acceptance
        })

        const scan = Effect.gen(function* () {
          const due = yield* announceDue(sql, { lanes: lanesAScan, depth: announced, again: announcedAgainMillis })
          return inTurns(due, announced)
        })

        const untilDue = Effect.fnUntraced(function* (max: number) {
          const [lane] = yield* sql<{ next_due_at: Date }>`
            select next_due_at from webhook_lanes where not paused and next_due_at is not null
            order by next_due_at limit 1`
          const now = yield* Clock.currentTimeMillis
          return lane === undefined ? max : Math.min(max, Math.max(0, lane.next_due_at.getTime() - now))
        })

        const told = Effect.fnUntraced(function* (dead: ReadonlyArray<Settled>) {
          yield* outbox.add(...dead.map((d) => ({
            stream: "DEAD_LETTERS" as const,
            subject: `webhooks.v1.dead.${Subject.token(d.webhook_id)}`,
            payload: JSON.stringify({
              delivery_id: d.delivery_id,
              webhook_id: d.webhook_id,
              account_id: d.account_id,
            }),
          })))
          yield* notifications.announce(...(yield* deadLetterNotices(sql, dead)))
        })

        const settleAll = Effect.fnUntraced(function* (batch: ReadonlyArray<Result>) {
          yield* faultPoint("settle.before")
          const mayDie = batch.some(({ ending, fatal, task }) =>
            fatal === true || ending !== "released" && task.attempt >= 8
          )
          const others = batch.filter((result) => !isDelivered(result))
          const own = batch.length < few ? quick : sql
          const ended = mayDie
            ? yield* Effect.gen(function* () {
              const all = yield* settle(sql, config.schedule, others)
              yield* told(all.filter((s) => s.next === "dead"))
              return all
            }).pipe(sql.withTransaction)
            : yield* settle(own, config.schedule, others)
          const delivered = yield* settleDelivered(own, batch.filter(isDelivered))
          yield* faultPoint("settle.committed")
          const outcomes = new Map<Next, number>()
          const note = (result: Result, next: Next) => {
            report.add(result, next)
            outcomes.set(next, (outcomes.get(next) ?? 0) + 1)
          }
          const became = new Map(ended.map(({ delivery_id, next }) => [delivery_id, next]))
          for (const result of others) {
            const next = became.get(result.task.deliveryId)
            if (next !== undefined) note(result, next)
          }
          for (const result of delivered) note(result, "delivered")
          if (outcomes.size > 0) reported.openUnsafe()
          // Whoever scans may sleep beyond it.
          if (outcomes.has("retry") && impatient) yield* bells.ring(dueTopic)
          yield* countSettled(outcomes, slots.load.claimed)
          return ended.length + delivered.length
        })

        const settlement = makeSettlement({ sql, sender, lease, settleAll, onRoom: feed.look }, clock)
        yield* Effect.forkScoped(settlement.watching)

        const free = Effect.tap(settlement.free, (freed) => freed > 0 ? bells.ring(dueTopic) : Effect.void)

        const tell = Effect.suspend(() =>
          Effect.forEach(report.take(), ({ data, subject }) => bus.publishCore(subject, data), { discard: true })
        )
        yield* Effect.addFinalizer(() => tell)
        yield* reported.await.pipe(
          Effect.andThen(Effect.sleep(reportEveryMillis)),
          Effect.andThen(Effect.sync(() => reported.closeUnsafe())),
          Effect.andThen(tell),
          Effect.forever,
          Effect.forkScoped,
        )

        const waitForRoom: Effect.Effect<void> = Effect.suspend(() => {
          if (slots.spare >= (slots.sizes.hungry > 0 ? backlogRoom : intakeRoom)) return Effect.void
          settlement.changed.closeUnsafe()
          return Effect.andThen(settlement.changed.await, waitForRoom)
        })
        const whileFull = Effect.fnUntraced(function* (maxMillis: number) {
          for (let look = 0; look < longestLooks; look++) {
            const before = answers
            if (Option.isSome(yield* Effect.timeoutOption(waitForRoom, maxMillis))) return
            if (answers - before < manyAnswers && settlement.size() < manyUnsettled) return
          }
        })

        return Deliveries.of({
          accept: take,
          scan,
          untilDue,
          dispatch: feed.dispatch,
          feeding: feed.feeding,
          settling: settlement.settling,
          free,
          whileFull,
        })
      }),
    )
}
