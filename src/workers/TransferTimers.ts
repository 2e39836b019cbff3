/**
 * Fires the timers of transfers. A scan claims due timers and calls the service, which decides by the state; then it
 * sleeps until the next timer, at most a second. Pauses while this machine's clock is far from the database's.
 */
import { Array, Effect, Layer } from "effect"
import { TransferId } from "../../schemas/BrandedIds.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { faultPoint } from "../../services/platform/Failpoints.ts"
import { claimed } from "../../services/platform/database/Leases.ts"
import { type ClaimedTimer, Timers as TimerRows } from "../../services/platform/database/Timers.ts"
import { type Settled, Transfers, transferTimers } from "../../services/transfers/Transfers.ts"
import { every, loop } from "./Loop.ts"

/** Timers in one transaction: beyond this number the cost of a timer no longer falls. */
const limit = 400
/** Turns that run in parallel on a backlog: enough that this program and PostgreSQL do not wait for each other. */
const parallelTurns = 3
const longestSleepMillis = 1_000

export const TransferTimers = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const rows = yield* TimerRows
    const transfers = yield* Transfers

    // A changed transfer has rewritten its timers, and so has no claims left; only the others are retried.
    const fire = Effect.fnUntraced(function* (timers: ReadonlyArray<ClaimedTimer>) {
      const settled = yield* transfers.settleMany(timers.map(({ aggregate_id }) => TransferId.make(aggregate_id)))
      const those = (what: Settled) => timers.filter(({ aggregate_id }) => settled.get(aggregate_id) === what)
      yield* rows.retry(those("unmoved"), "nothing to do yet")
      yield* rows.retry(those("failed"), "failed: see the log")
    })

    const batch = Effect.fnUntraced(function* (due: ReadonlyArray<ClaimedTimer>) {
      if (due.length === 0) return false
      yield* faultPoint("timer.claimed")
      yield* fire(due).pipe(
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logWarning("timers failed", cause), rows.retry(due, "failed: see the log"))
        ),
      )
      return due.length === limit
    })

    /** Returns whether more timers may be due. */
    const turn = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      const claim = rows.claim(transferTimers, limit)
      return yield* claimed({ claim, work: batch, giveBack: rows.giveBack })
    })
    const drain = Effect.repeat(turn, { while: (more) => more })
    const scan = Effect.flatMap(
      turn,
      (more) =>
        more
          ? Effect.as(
            Effect.all(Array.replicate(drain, parallelTurns), { concurrency: "unbounded", discard: true }),
            true,
          )
          : Effect.succeed(false),
    )

    const sleep = (max: number) =>
      rows.untilNext(transferTimers, max).pipe(
        Effect.catch(() => Effect.succeed(max)),
        Effect.flatMap((millis) => Effect.sleep(Math.max(5, millis))),
      )
    yield* loop("timers", { wait: sleep }, longestSleepMillis, scan)
    yield* every("timers' leases", 5_000, rows.free)
  })),
}
