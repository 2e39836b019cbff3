/**
 * Accepts events, claims deliveries and sends them; Settlement.ts settles the results. A delivery is POSTed only after
 * the database has claimed it, a result counts only if its claim is still the row's, and a claim that is not settled is
 * free again when its lease ends.
 *
 * Killed before the commit of `accept`: the broker delivers the events again. Killed later, up to the settlement: the
 * claims expire and the deliveries are sent again under the same `webhook-id`. Nothing is lost; a delivery in flight
 * may arrive twice.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { accept, acceptAll, type Acceptance, type Accepted } from "./Deliveries/CreateDeliveries.ts"
import { announceDue, type Announcement, dueTopic, inTurns } from "./Deliveries/DeliveryClaims.ts"
import { makeBacklogClaims } from "./Deliveries/BacklogClaims.ts"
import { countAccepted } from "./Deliveries/Metrics.ts"
import { Endpoints } from "./Endpoints.ts"
import { Listeners } from "./Listeners.ts"
import { leaseMillis, Sender, type SenderConfig } from "./Sender.ts"
import { Settlement } from "./Settlement.ts"

export type { Acceptance, Accepted } from "./Deliveries/CreateDeliveries.ts"
export type { Announcement } from "./Deliveries/DeliveryClaims.ts"

/** Intake waits for room for this many deliveries: one batch of events and some more. */
const intakeRoom = 700
/**
 * The same while there is a backlog, which may use three quarters of all claims: part of it is sent before newer
 * events.
 */
const backlogRoom = 1_400
/** With this many answers within one wait, events stay on the bus, since there will be room soon. */
const manyAnswers = 100
/** With this many unsettled results, the database is the bottleneck. */
const manyUnsettled = 1_024
const maxWaits = 40
const queuesPerScan = 256
/** Deliveries per announcement. */
const announcementSize = 100
/** A queue state whose deliveries were announced is due again after this time, if some of them were not claimed. */
export const announcedAgainMillis = 30_000

export class Deliveries extends Context.Service<Deliveries, {
  /** Accepts events in one transaction, then sends the deliveries that it claimed. */
  readonly accept: (events: ReadonlyArray<Accepted>) => Effect.Effect<Acceptance, SqlError.SqlError>
  /** Finds due deliveries that are not claimed; returns their announcements, account by account. */
  readonly scan: Effect.Effect<ReadonlyArray<Announcement>, SqlError.SqlError>
  /** Milliseconds until a scan would find something: 0 if it would now, at most `max`. */
  readonly untilDue: (max: number) => Effect.Effect<number, SqlError.SqlError>
  /** Claims and sends the announced deliveries that this process has room for. */
  readonly dispatch: (announcements: ReadonlyArray<Announcement>) => Effect.Effect<void, SqlError.SqlError>
  /** Claims and sends the other due deliveries in batches as there is room, while `mayClaim`; does not end. */
  readonly claiming: (mayClaim: Effect.Effect<boolean>) => Effect.Effect<never>
  /**
   * Waits while there is little room: at most `maxMillis`, since slow endpoints must not delay the events of others, or
   * 40 times that while receivers answer fast or the database is behind with settlements.
   */
  readonly whileFull: (maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/webhooks/Deliveries") {
  static readonly layer = (config: SenderConfig) =>
    Layer.effect(
      Deliveries,
      Effect.gen(function* () {
        const { quick, sql } = yield* Database
        const wakeUps = yield* WakeUps
        const endpoints = yield* Endpoints
        const listeners = yield* Listeners
        const sender = yield* Sender
        const settlement = yield* Settlement
        const { slots } = sender
        const lease = leaseMillis(config)
        const clock = yield* Clock.Clock
        const { giveBack } = settlement
        const claims = makeBacklogClaims({ sql, endpoints, lease, sender, giveBack, announcementSize }, clock)
        settlement.onRoom(claims.wake)

        // Uninterruptible: the inserted claims must reach the Sender, which gives them back after a stop.
        const acceptSome = (events: ReadonlyArray<Accepted>, lock: boolean) =>
          claims.reserving((reserve) =>
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
              lock,
            )
          ).pipe(
            Effect.tap(() => faultPoint("intake.committed")),
            Effect.tap(({ tasks }) => Effect.sync(() => sender.send(tasks))),
            Effect.uninterruptible,
          )

        const acceptEvents = Effect.fn("Deliveries.accept")(function* (events: ReadonlyArray<Accepted>) {
          yield* faultPoint("intake.taken")
          const acceptance = yield* acceptAll(acceptSome, events)
          if (acceptance.tasks.length > 0) claims.firstTries(acceptance.tasks.length)
          if (acceptance.overflow) yield* wakeUps.notify(dueTopic)
          yield* countAccepted(acceptance, events.length)
          return acceptance
        })

        const scan = Effect.gen(function* () {
          const due = yield* announceDue(sql, {
            queues: queuesPerScan,
            depth: announcementSize,
            again: announcedAgainMillis,
          })
          return inTurns(due, announcementSize)
        })

        const untilDue = Effect.fnUntraced(function* (max: number) {
          const [queue] = yield* sql<{ next_due_at: Date }>`
            select next_due_at from webhook_lanes where not paused and next_due_at is not null
            order by next_due_at limit 1`
          const now = yield* Clock.currentTimeMillis
          return queue === undefined ? max : Math.min(max, Math.max(0, queue.next_due_at.getTime() - now))
        })

        const waitForRoom: Effect.Effect<void> = Effect.suspend(() => {
          if (slots.spare >= (slots.sizes.backlogged > 0 ? backlogRoom : intakeRoom)) return Effect.void
          return Effect.andThen(settlement.progress, waitForRoom)
        })
        const whileFull = Effect.fnUntraced(function* (maxMillis: number) {
          for (let look = 0; look < maxWaits; look++) {
            const before = settlement.counts().answers
            if (Option.isSome(yield* Effect.timeoutOption(waitForRoom, maxMillis))) return
            const { answers, unsettled } = settlement.counts()
            if (answers - before < manyAnswers && unsettled < manyUnsettled) return
          }
        })

        return Deliveries.of({
          accept: acceptEvents,
          scan,
          untilDue,
          dispatch: claims.dispatch,
          claiming: claims.claiming,
          whileFull,
        })
      }),
    )
}
