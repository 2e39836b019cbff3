/**
 * What states do by themselves. A scan claims what is due and asks the service, which asks the state; it sleeps until the
 * next timer, at most a second. It pauses while this machine's clock is far from the database's.
 */
import { Effect, Layer } from "effect"
import { ClockHealth } from "../../services/platform/DatabaseClock.ts"
import { type ClaimedTimer, Timers as TimerRows } from "../../services/platform/Timers.ts"
import { Transfers, transferTimers } from "../../services/transfers/Transfers.ts"
import { every, loop } from "./Loop.ts"

const batch = 64
const atOnce = 6
const longestSleepMillis = 1_000

export const Timers = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const rows = yield* TimerRows
    const transfers = yield* Transfers

    // Whatever moved has its timers rewritten, so the claim is gone with them; the rest waits a moment.
    const fire = Effect.fnUntraced(function* (timer: ClaimedTimer) {
      const moved = yield* transfers.settle(timer.aggregate_id)
      if (!moved) yield* rows.retry(timer, "nothing to do yet")
    })

    const scan = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      const due = yield* rows.claim(transferTimers, batch)
      yield* Effect.forEach(
        due,
        (timer) =>
          fire(timer).pipe(Effect.catchCause((cause) =>
            Effect.andThen(
              Effect.logWarning("a timer failed", cause),
              rows.retry(timer, "failed: see the log"),
            )
          )),
        { concurrency: atOnce, discard: true },
      )
      return due.length === batch
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
