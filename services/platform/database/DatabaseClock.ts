/**
 * One clock for all processes, the database's. Every process measures the difference between the database's clock and
 * its own monotonic clock and adds it, so that all processes agree on the time to within a round trip, whatever their
 * own wall clocks say.
 *
 * A wall clock more than 30 s from the database's shows a fault of one of the two, on which no work should be done:
 * `ClockHealth` says so, and timers, delivery and relay pause until it is over. Only the program installs this clock;
 * tests have their own.
 */
import { Clock, Context, Duration, Effect, Layer, Ref } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "./Database.ts"

const toleratedMillis = 30_000
/** A clock that is set back by less than this stands still until it has caught up. */
const heldBackMillis = 1_000

export class ClockHealth extends Context.Reference<{
  readonly read: Effect.Effect<{
    /** The database's clock less this machine's, in milliseconds. */
    readonly offsetMillis: number
    /** Whether they are at most 30 s apart. */
    readonly healthy: boolean
  }>
}>("bailiwick/services/platform/database/DatabaseClock/ClockHealth", {
  defaultValue: () => ({ read: Effect.succeed({ offsetMillis: 0, healthy: true }) }),
}) {}

const monotonicMillis = () => performance.now()

/** Effect's own clock with another time of day: `base` plus the monotonic time. */
const shifted = (own: Clock.Clock, base: () => number): Clock.Clock => {
  let last = 0
  const millis = () => {
    const now = base() + monotonicMillis()
    return last = now < last && last - now < heldBackMillis ? last : now
  }
  return {
    currentTimeMillisUnsafe: () => Math.floor(millis()),
    currentTimeMillis: Effect.sync(() => Math.floor(millis())),
    currentTimeNanosUnsafe: () => BigInt(Math.floor(millis() * 1_000)) * 1_000n,
    currentTimeNanos: Effect.sync(() => BigInt(Math.floor(millis() * 1_000)) * 1_000n),
    monotonicTimeNanosUnsafe: () => own.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: own.monotonicTimeNanos,
    sleep: (duration) => own.sleep(duration),
  }
}

/** The database's clock less the monotonic one: `base`, give or take `off`. */
interface Look {
  readonly base: number
  readonly off: number
}

/** Measures by the quickest of three round trips, the wait for a connection included. */
const measure: Effect.Effect<Look, SqlError.SqlError, Database> = Effect.gen(function* () {
  const { sql } = yield* Database
  let best: Look = { base: 0, off: Infinity }
  for (let i = 0; i < 3; i++) {
    const before = monotonicMillis()
    const [row] = yield* sql<{ now: number }>`
      select extract(epoch from clock_timestamp())::float8 * 1000 as now`
    const off = (monotonicMillis() - before) / 2
    if (off < best.off) best = { base: row!.now - (before + off), off }
  }
  return best
})

/** Keeps the known value where the new measurement allows it: a slow round trip would only move the clock. */
const settled = (known: number, { base, off }: Look): number => Math.min(Math.max(known, base - off), base + off)

/** Replaces Effect's Clock and provides `ClockHealth`; measures at the start, then every `everyMillis`. */
const layer = (everyMillis = 10_000) =>
  Layer.effectContext(Effect.gen(function* () {
    const own = yield* Clock.Clock
    let { base } = yield* measure
    const offset = () => base + monotonicMillis() - own.currentTimeMillisUnsafe()
    const health = yield* Ref.make(offset())
    yield* Effect.gen(function* () {
      yield* own.sleep(Duration.millis(everyMillis))
      base = settled(base, yield* measure)
      const off = offset()
      const was = yield* Ref.getAndSet(health, off)
      if (Math.abs(off) > toleratedMillis && Math.abs(was) <= toleratedMillis) {
        yield* Effect.logError(`this machine's clock is ${Math.round(off)} ms from the database's: work is paused`)
      }
    }).pipe(
      Effect.catch((error) => Effect.logDebug("the database's clock was not read", error)),
      Effect.forever,
      Effect.forkScoped,
    )
    return Context.make(Clock.Clock, shifted(own, () => base)).pipe(Context.add(ClockHealth, {
      read: Effect.map(Ref.get(health), (offsetMillis) => ({
        offsetMillis: Math.round(offsetMillis),
        healthy: Math.abs(offsetMillis) <= toleratedMillis,
      })),
    }))
  }))

export const DatabaseClock = { layer } as const
