/**
 * Settles what became of claims, batch by batch, and keeps the process from claiming more than it settles
 * (docs/delivery.md, Back-pressure).
 *
 * A claim whose result is not settled before its lease ends is freed by some process, and its delivery is sent again.
 * Four things prevent that, from the first to the last:
 *
 * 1. An unsettled result takes room as a claim does (`Sender.slots`), so at most 4,096 deliveries are in memory, whatever
 *    the database does. A settlement takes up to 2,000 results, those whose lease ends first.
 * 2. While a result is older than a quarter of a lease, nothing is claimed; half a lease is logged. A result is older
 *    than that only while the database settles nothing.
 * 3. The lease of a result that is not settled is renewed when less than a third of it is left, in one statement a look:
 *    renewing costs the database a fraction of settling, and waits for no lock. A process that renews nothing is dead,
 *    frozen or cut off, and this one cannot be told from those by any other.
 * 4. While the database is away, no process renews a lease. A process frees no claim while it has itself a result whose
 *    lease is over, nor for one and a half leases after it last failed to read the expired claims: each holder of
 *    results settles them first.
 *
 * What remains: a process that alone cannot reach the database for longer than its leases. What it had in memory when
 * that began, and nothing else, is sent again by others.
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
import { countSettled } from "./Deliveries/Metrics.ts"
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
   * Settles one batch; gives those whose claim was still the row's, with what became of each. The others change nothing.
   * A batch that fails may be settled again.
   */
  readonly settle: (results: ReadonlyArray<Result>) => Effect.Effect<ReadonlyArray<Settled>, SqlError.SqlError>
  /**
   * Settles what the Sender answers and what is given back, for ever. When it is interrupted, it gives back what was not
   * begun, and waits for what was, up to 5 s.
   */
  readonly settling: Effect.Effect<never>
  /** Frees claims whose lease is over; gives how many. */
  readonly free: Effect.Effect<number, SqlError.SqlError>
  /** Queues claims of which nothing was sent: they are due again. */
  readonly giveBack: (claims: ReadonlyArray<Result["task"]>) => void
  /** Sets what is called whenever there may be room for claims. */
  readonly onRoom: (listener: () => void) => void
  /** Waits until results were settled. */
  readonly progress: Effect.Effect<void>
  /** Results that are not settled, and how many receivers have answered since the start. */
  readonly counts: () => { readonly unsettled: number; readonly answers: number }
}>()("bailiwick/services/webhooks/Settlement") {
  static readonly layer = (config: SettlementConfig) => Layer.effect(Settlement, make(config))
}

/** Sends what is added to the stream RESULTS, some moments later, until the current scope ends. */
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
  const bells = yield* WakeUps
  const outbox = yield* Outbox
  const notifications = yield* Notifications
  const sender = yield* Sender
  const clock = yield* Clock.Clock
  const report = yield* reporting
  const lease = leaseMillis(config)
  const impatient = Math.min(...schedule.delays) < scanEveryMillis
  let answers = 0
  let room = () => {}

  const settle = Effect.fnUntraced(function* (results: ReadonlyArray<Result>) {
    yield* faultPoint("settle.before")
    const settled = yield* settleBatch({ sql, quick, outbox, notifications, schedule }, results)
    yield* faultPoint("settle.committed")
    report(settled)
    const outcomes = new Map<Next, number>()
    for (const { next } of settled) outcomes.set(next, (outcomes.get(next) ?? 0) + 1)
    // A scan may sleep beyond the time at which a retry is due.
    if (outcomes.has("retry") && impatient) yield* bells.ring(dueTopic)
    yield* countSettled(outcomes, sender.slots.load.claimed)
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
      (freed) => freed > 0 ? bells.ring(dueTopic) : Effect.void,
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
