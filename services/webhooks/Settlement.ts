/**
 * Settles the results of claims, batch by batch, and keeps the process from claiming more than it settles
 * (docs/delivery.md, Back-pressure).
 *
 * If a result is not settled before its lease ends, a process frees the claim and the delivery is sent again. Four
 * rules prevent that, in this order:
 *
 * 1. An unsettled result takes room as a claim does (`Sender.slots`), so at most 4,096 deliveries are in memory,
 * whatever the database does. A settlement takes up to 2,000 results; results whose lease ends first go first. 2. While
 * a result is older than a quarter of a lease, nothing is claimed; at half a lease a warning is logged. Results get
 * that old only while the database settles nothing. 3. The lease of an unsettled result is renewed when less than a
 * third of it is left, in one statement per check: renewing costs the database a fraction of settling, and waits for no
 * lock. A process that does not renew is dead, frozen or cut off; other processes cannot tell which. 4. While the
 * database is away, no process renews a lease. A process frees no claim while it has a result of its own whose lease
 * has ended, nor for one and a half leases after it last failed to read the expired claims: so each process settles its
 * results first.
 *
 * One case remains: only one process cannot reach the database, for longer than its leases. Other processes then send
 * again the deliveries that it had in memory when that began, and no others.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Notifications } from "../notifications/Notifications.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { Bus } from "../platform/messaging/Bus.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { dueTopic, scanEveryMillis } from "./Deliveries/DeliveryClaims.ts"
import { countSettled, deliveryMetrics, measureFirstAnswers } from "./Deliveries/Metrics.ts"
import type { RetrySchedule } from "./RetrySchedule.ts"
import { leaseMillis, Sender, type SenderConfig } from "./Sender.ts"
import { releasedOf, type Result } from "./Sender/Task.ts"
import { AttemptReports } from "./Settlement/AttemptReports.ts"
import { settleBatch } from "./Settlement/SettleBatch.ts"
import type { Next, Settled } from "./Settlement/SettlementDecision.ts"
import { makeQueue } from "./Settlement/SettlementQueue.ts"
import { freeing, watching } from "./Settlement/UnsettledLeases.ts"

export type { Settled } from "./Settlement/SettlementDecision.ts"

export interface SettlementConfig extends SenderConfig {
  readonly schedule: RetrySchedule
}

const reportEveryMillis = 200

export class Settlement extends Context.Service<Settlement, {
  /**
   * Settles one batch; returns the results whose claim was still the row's, each with what became of its delivery. The
   * other results change nothing. A batch that fails may be settled again.
   */
  readonly settle: (results: ReadonlyArray<Result>) => Effect.Effect<ReadonlyArray<Settled>, SqlError.SqlError>
  /**
   * Settles the Sender's results and the claims that are given back; does not end. When it is interrupted, it gives
   * back the claims that were not begun, and waits up to 5 s for those that were.
   */
  readonly settling: Effect.Effect<never>
  /** Frees claims whose lease has ended; returns how many. */
  readonly free: Effect.Effect<number, SqlError.SqlError>
  /** Queues the release of claims of which nothing was sent: their deliveries are due again. */
  readonly giveBack: (claims: ReadonlyArray<Result["task"]>) => void
  /** Sets the listener that is called whenever there may be room for claims. */
  readonly onRoom: (listener: () => void) => void
  /** Waits until a batch of results has ended. */
  readonly progress: Effect.Effect<void>
  /** The number of unsettled results, and of answers by receivers since the start. */
  readonly counts: () => { readonly unsettled: number; readonly answers: number }
}>()("bailiwick/services/webhooks/Settlement") {
  static readonly layer = (config: SettlementConfig) => Layer.effect(Settlement, make(config))
}

/**
 * Returns a function that reports settled attempts on the stream RESULTS, up to 200 ms later, until the current scope
 * ends.
 */
const reporting = Effect.gen(function* () {
  const bus = yield* Bus
  const reports = new AttemptReports()
  const reported = Latch.makeUnsafe(false)
  const send = Effect.suspend(() =>
    Effect.forEach(reports.take(), ({ data, subject }) => bus.publishCore(subject, data), { discard: true })
  )
  yield* Effect.addFinalizer(() => send)
  yield* reported.await.pipe(
    Effect.andThen(Effect.sleep(reportEveryMillis)),
    Effect.andThen(Effect.sync(() => reported.closeUnsafe())),
    Effect.andThen(send),
    Effect.forever,
    Effect.forkScoped,
  )
  return (settled: ReadonlyArray<Settled>) => {
    for (const { next, result } of settled) reports.add(result, next)
    if (settled.length > 0) reported.openUnsafe()
  }
})

const make = Effect.fnUntraced(function* ({ schedule, ...config }: SettlementConfig) {
  const { quick, sql } = yield* Database
  const wakeUps = yield* WakeUps
  const outbox = yield* Outbox
  const notifications = yield* Notifications
  const sender = yield* Sender
  const clock = yield* Clock.Clock
  const report = yield* reporting
  yield* deliveryMetrics
  const lease = leaseMillis(config)
  const retriesSoon = Math.min(...schedule.delays) < scanEveryMillis
  let answers = 0
  let room = () => {}

  const settle = Effect.fnUntraced(function* (results: ReadonlyArray<Result>) {
    yield* faultPoint("settle.before")
    const settled = yield* settleBatch({ sql, quick, outbox, notifications, schedule }, results)
    yield* faultPoint("settle.committed")
    report(settled)
    const outcomes = new Map<Next, number>()
    for (const { next } of settled) outcomes.set(next, (outcomes.get(next) ?? 0) + 1)
    // The next scan may be later than the retry's due time.
    if (outcomes.has("retry") && retriesSoon) yield* wakeUps.notify(dueTopic)
    yield* countSettled(outcomes, sender.slots.load.claimed)
    yield* measureFirstAnswers(settled)
    return settled
  })

  const queue = makeQueue({ sender, lease, settle, onRoom: () => room() }, clock)
  sender.onResult((result) => {
    queue.add([result])
    if (result.ending === "answered") answers++
    room()
  })
  yield* Effect.forkScoped(watching({ sql, queue, lease }, clock))

  return Settlement.of({
    settle,
    settling: queue.settling,
    free: Effect.tap(
      freeing({ sql, queue, lease }, settle),
      (freed) => freed > 0 ? wakeUps.notify(dueTopic) : Effect.void,
    ),
    giveBack: (claims) => queue.add(claims.map(releasedOf)),
    onRoom: (listener) => {
      room = listener
    },
    progress: Effect.suspend(() => {
      queue.changed.closeUnsafe()
      return queue.changed.await
    }),
    counts: () => ({ unsettled: queue.unsettled.size, answers }),
  })
})
