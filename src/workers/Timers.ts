/**
 * What states do by themselves. A scan claims what is due and asks the service, which asks the state; it sleeps until the
 * next timer, at most a second. It pauses while this machine's clock is far from the database's.
 */
import { Array, Effect, Layer } from "effect"
import { ClockHealth } from "../../services/platform/DatabaseClock.ts"
import { type ClaimedTimer, Timers as TimerRows } from "../../services/platform/Timers.ts"
import { type Settled, Transfers, transferTimers } from "../../services/transfers/Transfers.ts"
import { every, loop } from "./Loop.ts"

/** Claimed at once, and of those in one transaction: two at a time keep both this program and PostgreSQL at work. */
const claimed = 1_000
const together = 500
const longestSleepMillis = 1_000

export const Timers = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const rows = yield* TimerRows
    const transfers = yield* Transfers

    // Whatever moved has its timers rewritten, so the claims are gone with them; the rest waits a moment.
    const fire = Effect.fnUntraced(function* (timers: ReadonlyArray<ClaimedTimer>) {
      const settled = yield* transfers.settleMany(timers.map(({ aggregate_id }) => aggregate_id))
      const those = (what: Settled) => timers.filter(({ aggregate_id }) => settled.get(aggregate_id) === what)
      yield* rows.retry(those("unmoved"), "nothing to do yet")
      yield* rows.retry(those("failed"), "failed: see the log")
    })

    const scan = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      const due = yield* rows.claim(transferTimers, claimed)
      yield* Effect.forEach(
        Array.chunksOf(due, together),
        (timers) =>
          fire(timers).pipe(
            Effect.catchCause((cause) =>
              Effect.andThen(Effect.logWarning("timers failed", cause), rows.retry(timers, "failed: see the log"))
            ),
          ),
        { concurrency: 2, discard: true },
      )
      return due.length === claimed
    })

    const sleep = (max: number) =>
      rows.untilNext(transferTimers, max).pipe(
        Effect.catch(() => Effect.succeed(max)),
        Effect.flatMap((millis) => Effect.sleep(Math.max(5, millis))),
      )
    yield* loop("timers", { wait: sleep }, longestSleepMillis, scan)
    yield* every("timers' leases", 5_000, rows.free)
  })),
}
