/**
 * Deliveries: claim and send; Settlement.ts settles. Nothing is POSTed that the database did not claim first, nothing
 * counts that the claim does not fence, and a claim that is not settled is free again when its lease is over.
 *
 * Killed before the commit of `accept`: the broker hands the events out again. Killed after it, or anywhere up to the
 * settlement: the claims expire and the deliveries are sent again, under the same `webhook-id`. Nothing is lost; what was
 * in flight may arrive twice.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { accept, acceptAll, type Acceptance, type Accepted } from "./Deliveries/CreateDeliveries.ts"
import { announceDue, type Announcement, dueTopic, inTurns } from "./Deliveries/DeliveryClaims.ts"
import { makeFeed } from "./Deliveries/BacklogClaims.ts"
import { countAccepted } from "./Deliveries/Metrics.ts"
import { Endpoints } from "./Endpoints.ts"
import { Listeners } from "./Listeners.ts"
import { leaseMillis, Sender, type SenderConfig } from "./Sender.ts"
import { Settlement } from "./Settlement.ts"

export type { Acceptance, Accepted } from "./Deliveries/CreateDeliveries.ts"
export type { Announcement } from "./Deliveries/DeliveryClaims.ts"

/** Deliveries that are to find room before more events are taken in: a batch of them, and some. */
const intakeRoom = 700
/** The same while there is a backlog, which may use three quarters of all claims: some of it goes before newer events. */
const backlogRoom = 1_400
/** Answers within one wait, from which on the bus keeps events better than the queue does: it will be their turn soon. */
const manyAnswers = 100
/** Results, from which on the database is what all wait for. */
const manyUnsettled = 1_024
const longestLooks = 40
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
  /**
   * Waits while there is little room: at most `maxMillis`, since slow endpoints must not hold up another's events, or 40
   * times that while receivers answer fast or the database is behind with settlements.
   */
  readonly whileFull: (maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/webhooks/Deliveries") {
  static readonly layer = (config: SenderConfig) =>
    Layer.effect(
      Deliveries,
      Effect.gen(function* () {
        const { quick, sql } = yield* Database
        const bells = yield* WakeUps
        const endpoints = yield* Endpoints
        const listeners = yield* Listeners
        const sender = yield* Sender
        const settlement = yield* Settlement
        const { slots } = sender
        const lease = leaseMillis(config)
        const clock = yield* Clock.Clock
        const { giveBack } = settlement
        const feed = makeFeed({ sql, endpoints, lease, sender, giveBack, announced }, clock)
        settlement.onRoom(feed.look)

        // One step: what was born claimed is the Sender's, and after a stop the Sender gives it back.
        const takeSome = (events: ReadonlyArray<Accepted>, hold: boolean) =>
          feed.reserving((reserve) =>
            accept(
              {
                sql,
                quick,
                endpoints,
                listeners,
                lease,
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

        const waitForRoom: Effect.Effect<void> = Effect.suspend(() => {
          if (slots.spare >= (slots.sizes.hungry > 0 ? backlogRoom : intakeRoom)) return Effect.void
          return Effect.andThen(settlement.progress, waitForRoom)
        })
        const whileFull = Effect.fnUntraced(function* (maxMillis: number) {
          for (let look = 0; look < longestLooks; look++) {
            const before = settlement.counts().answers
            if (Option.isSome(yield* Effect.timeoutOption(waitForRoom, maxMillis))) return
            const { answers, unsettled } = settlement.counts()
            if (answers - before < manyAnswers && unsettled < manyUnsettled) return
          }
        })

        return Deliveries.of({
          accept: take,
          scan,
          untilDue,
          dispatch: feed.dispatch,
          feeding: feed.feeding,
          whileFull,
        })
      }),
    )
}
