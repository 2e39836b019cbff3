/**
 * Fires the timers of requests and of Access: undecided requests expire, links take effect, held launches are tried again,
 * an Access whose end has come is revoked. A timer only calls the service, which decides by the state; a failure concerns that timer alone. Pauses while this
 * machine's clock is far from the database's.
 */
import { Effect, Layer } from "effect"
import { AccessId, RequestId } from "../../schemas/BrandedIds.ts"
import { accessOf } from "../../services/access/AccessEndRows.ts"
import { AccessEnds } from "../../services/access/AccessEnds.ts"
import { accessTimer } from "../../services/access/AccessTerm.ts"
import { PolicyDecisions } from "../../services/decisions/PolicyDecisions.ts"
import { requestTimers } from "../../services/requests/RequestRows.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { readInstallation } from "../../services/platform/database/Installation.ts"
import { claimed } from "../../services/platform/database/Leases.ts"
import { type ClaimedTimer, Timers } from "../../services/platform/database/Timers.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { every, loop } from "./Loop.ts"

const kinds = [...requestTimers, accessTimer]
const limit = 100
const longestSleepMillis = 1_000

export const RequestTimers = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const database = yield* Database
    const policies = yield* PolicyDecisions
    const ends = yield* AccessEnds
    const rows = yield* Timers

    const settle = ({ aggregate_id, kind }: ClaimedTimer) =>
      kind === accessTimer
        ? run(ends.settle(AccessId.make(accessOf(aggregate_id))), { faults: "decision" })
        : run(policies.settle(RequestId.make(aggregate_id)))

    const fire = (timer: ClaimedTimer) =>
      settle(timer).pipe(
        Effect.provideService(Database, database),
        // What was changed has rewritten its timers, and so has no claim left: only the timer of what is as before is
        // retried.
        Effect.andThen(rows.retry([timer], "nothing to do yet")),
        Effect.catchCause((cause) =>
          Effect.andThen(
            Effect.logWarning("a timer failed", cause),
            rows.retry([timer], "failed: see the log"),
          )
        ),
      )

    const scan = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      // After a restore, objections, withdrawals and decisions may be missing: fire no timer while the installation is
      // held.
      if ((yield* readInstallation(database.sql)).state === "held") {
        yield* Effect.sleep(longestSleepMillis)
        return false
      }
      return yield* claimed({
        claim: rows.claim(kinds, limit),
        work: (due) => Effect.as(Effect.forEach(due, fire, { concurrency: 4, discard: true }), due.length === limit),
        giveBack: rows.giveBack,
      })
    })

    const sleep = (max: number) =>
      rows.untilNext(kinds, max).pipe(
        Effect.catch(() => Effect.succeed(max)),
        Effect.flatMap((millis) => Effect.sleep(Math.max(5, millis))),
      )
    yield* loop("request timers", { wait: sleep }, longestSleepMillis, scan)
    yield* every("request timers' leases", 5_000, rows.free)
  })),
}
