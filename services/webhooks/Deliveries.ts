/**
 * Deliveries: claim, send, settle. Nothing is POSTed that the database did not claim first, nothing counts that the
 * claim does not fence, and a claim that nobody settles is free again when its lease is over.
 *
 * Killed before the commit of `accept`: the broker hands the events out again. Killed after it, or anywhere up to the
 * settlement: the claims expire and the deliveries are sent again, under the same `webhook-id`. Nothing is lost; what was
 * in flight may arrive twice.
 */
import { Clock, Context, Effect, Latch, Layer, Schedule } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { Bells } from "../platform/Bells.ts"
import { Bus } from "../platform/Bus.ts"
import { Database } from "../platform/Database.ts"
import { faultPoint } from "../platform/Faults.ts"
import { Outbox } from "../platform/Outbox.ts"
import { isDataFault } from "../platform/SqlFaults.ts"
import { accept, type Acceptance, type Accepted } from "./Deliveries/Accept.ts"
import { announceDue, type Announcement, expired, inTurns } from "./Deliveries/Claim.ts"
import { makeFeed } from "./Deliveries/Feed.ts"
import { countAccepted, countSettled } from "./Deliveries/Metrics.ts"
import { Report } from "./Deliveries/Report.ts"
import { type Next, settle, type Settled } from "./Deliveries/Settle.ts"
import { isDelivered, settleDelivered } from "./Deliveries/SettleDelivered.ts"
import { Endpoints } from "./Endpoints.ts"
import type { RetrySchedule } from "./RetrySchedule.ts"
import { leaseMillis, Sender, type SenderConfig } from "./Sender.ts"
import { releasedOf, type Result } from "./Sender/Task.ts"

export type { Acceptance, Accepted } from "./Deliveries/Accept.ts"
export type { Announcement } from "./Deliveries/Claim.ts"

export interface DeliveriesConfig extends SenderConfig {
  readonly schedule: RetrySchedule
}

/** The bell that says that deliveries are due. */
export const dueTopic = "deliveries"

const settleBatch = 500
// A settlement costs as much as some forty results in it, and its commit holds up intake's; what is lost by a kill
// meanwhile is sent again.
const settleEveryMillis = 25
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
  /** Waits, at most `maxMillis`, while not one more delivery could be claimed. */
  readonly whileFull: (maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/webhooks/Deliveries") {
  static readonly layer = (config: DeliveriesConfig) =>
    Layer.effect(
      Deliveries,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const bus = yield* Bus
        const bells = yield* Bells
        const outbox = yield* Outbox
        const notifications = yield* Notifications
        const endpoints = yield* Endpoints
        const sender = yield* Sender
        const { slots } = sender
        const lease = leaseMillis(config)
        const results: Array<Result> = []
        const arrived = Latch.makeUnsafe(false)
        const settled = Latch.makeUnsafe(false)
        /** Whether results wait for a database that took none: they go before claims are freed, and taken for interrupted. */
        let overdue = false
        const giveBack = (claims: ReadonlyArray<Result["task"]>) => {
          if (claims.length === 0) return
          results.push(...claims.map(releasedOf))
          arrived.openUnsafe()
        }
        const feed = makeFeed({ sql, endpoints, lease, sender, giveBack, announced }, yield* Clock.Clock)
        const impatient = Math.min(...config.schedule.delays) < scanEveryMillis
        const report = new Report()
        const reported = Latch.makeUnsafe(false)

        sender.onResult((result) => {
          results.push(result)
          arrived.openUnsafe()
          feed.look()
        })

        const take = Effect.fn("Deliveries.accept")(function* (events: ReadonlyArray<Accepted>) {
          yield* faultPoint("intake.taken")
          const acceptance = yield* feed.reserving((reserve) =>
            accept({
              ...{ sql, endpoints, lease },
              reserve: (id, account) => reserve(id, account, 1) === 1,
              release: (id) => slots.drop(id, 1),
            }, events)
          )
          yield* faultPoint("intake.committed")
          sender.send(acceptance.tasks)
          if (acceptance.tasks.length > 0) feed.firstTries()
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
          yield* notifications.announce(...dead.map((d) => ({
            accountId: d.account_id,
            category: "alerts" as const,
            severity: "warning" as const,
            title: "A webhook delivery failed for good",
            body: `Delivery ${d.delivery_id} is in the dead letter queue.`,
            href: `/webhooks/${d.webhook_id}/deliveries/${d.delivery_id}`,
            coalesceKey: `dead-letter.${d.webhook_id}`,
          })))
        })

        const settleAll = Effect.fnUntraced(function* (batch: ReadonlyArray<Result>) {
          yield* faultPoint("settle.before")
          const mayDie = batch.some(({ ending, fatal, task }) =>
            fatal === true || ending !== "released" && task.attempt >= 8
          )
          const others = batch.filter((result) => !isDelivered(result))
          const ended = mayDie
            ? yield* Effect.gen(function* () {
              const all = yield* settle(sql, config.schedule, others)
              yield* told(all.filter((s) => s.next === "dead"))
              return all
            }).pipe(sql.withTransaction)
            : yield* settle(sql, config.schedule, others)
          const delivered = yield* settleDelivered(sql, batch.filter(isDelivered))
          yield* faultPoint("settle.committed")
          settled.openUnsafe()
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

        /** A result that PostgreSQL refuses is left to its claim's end, and holds up no other. */
        const settleEach = (batch: ReadonlyArray<Result>): Effect.Effect<void, SqlError.SqlError> =>
          Effect.catchTag(Effect.asVoid(settleAll(batch)), "SqlError", (error) => {
            if (!isDataFault(error)) return Effect.fail(error)
            if (batch.length === 1) return Effect.logError("a result was refused: its claim expires", error)
            const half = batch.length >> 1
            return Effect.andThen(settleEach(batch.slice(0, half)), settleEach(batch.slice(half)))
          })

        const flush = Effect.gen(function* () {
          const batch = results.splice(0, settleBatch)
          if (results.length === 0) arrived.closeUnsafe()
          if (batch.length === 0) return
          // The results are in memory only: they are kept until the database takes them, or their claims expire. What a
          // stop cuts off is settled once more; the fence makes that harmless.
          yield* settleEach(batch).pipe(
            Effect.tapError((error) => {
              overdue = true
              return Effect.logWarning("settling failed, trying again", error)
            }),
            Effect.retry({ schedule: Schedule.spaced("1 second"), times: 60 }),
            Effect.catch((error) => Effect.logError(`${batch.length} results given up: their claims expire`, error)),
            Effect.onInterrupt(() => Effect.sync(() => void results.unshift(...batch))),
            Effect.ensuring(Effect.sync(() => void (overdue &&= results.length > 0))),
          )
        })

        const settling = Effect.gen(function* () {
          yield* arrived.await
          if (results.length < settleBatch) yield* Effect.sleep(settleEveryMillis)
          yield* flush
        }).pipe(
          // Nobody else settles: whatever goes wrong with one batch, the next one comes.
          Effect.catchDefect((defect) =>
            Effect.andThen(
              Effect.logError("settling failed: the claims of its results expire", defect),
              Effect.sleep("1 second"),
            )
          ),
          Effect.forever,
          Effect.onInterrupt(() =>
            Effect.gen(function* () {
              for (const task of sender.stop()) results.push(releasedOf(task))
              while (slots.load.claimed > 0 || results.length > 0) {
                yield* flush
                if (results.length === 0 && slots.load.claimed > 0) yield* arrived.await
              }
            }).pipe(Effect.interruptible, Effect.timeoutOption("5 seconds"))
          ),
        )

        // All of them: a process that was killed under load leaves thousands, and a batch every 5 s would take minutes.
        const free = Effect.gen(function* () {
          let freed = 0
          let found = overdue ? 0 : settleBatch
          while (found === settleBatch) {
            const over = yield* expired(sql, settleBatch)
            found = over.length
            if (found > 0) freed += yield* settleAll(over)
          }
          if (freed > 0) yield* bells.ring(dueTopic)
          return freed
        })

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
          if (!slots.full) return Effect.void
          settled.closeUnsafe()
          return Effect.andThen(settled.await, waitForRoom)
        })
        const whileFull = (maxMillis: number) => Effect.asVoid(Effect.timeoutOption(waitForRoom, maxMillis))

        return Deliveries.of({
          accept: take,
          scan,
          untilDue,
          dispatch: feed.dispatch,
          feeding: feed.feeding,
          settling,
          free,
          whileFull,
        })
      }),
    )
}
