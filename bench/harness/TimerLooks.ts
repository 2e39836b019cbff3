/** The queries of the timers' worker when there is nothing to do. */
import { Effect, Redacted } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { Timers } from "../../services/platform/database/Timers.ts"
import { transferTimers } from "../../services/transfers/Transfers.ts"
import { median } from "./Figures.ts"
import type { Fixture } from "./Servers.ts"
import { pending } from "./TransferSeed.ts"

export interface Look {
  readonly pending: number
  /** Milliseconds. */
  readonly claim: number
  readonly next: number
}

/** The cost of finding that nothing is due, beside this many timers that are not. */
export const looks = (fixture: Fixture, beside: number) =>
  Effect.gen(function* () {
    yield* pending(fixture.sql, beside)
    yield* fixture.sql`vacuum analyze timers`
    const timers = yield* Timers
    const once = Effect.fnUntraced(function* <A, E>(look: Effect.Effect<A, E>) {
      const at = performance.now()
      yield* look
      return performance.now() - at
    })
    const timed = <A, E>(look: Effect.Effect<A, E>) =>
      Effect.map(Effect.forEach(Array.from({ length: 200 }), () => once(look)), median)
    yield* timed(timers.claim(transferTimers, 400))
    return {
      pending: beside,
      claim: yield* timed(timers.claim(transferTimers, 400)),
      next: yield* timed(timers.untilNext(transferTimers, 1_000)),
    } satisfies Look
  }).pipe(
    Effect.provide(Timers.layer),
    Effect.provide(Database.layer({
      url: Redacted.make(fixture.databaseUrl),
      ownerUrl: Redacted.make(fixture.ownerUrl),
      maxConnections: 2,
    })),
  )
