/** Effects that run with a clock some days behind, for tests that need old rows. */
import { Clock, Effect } from "effect"

const dayMillis = 86_400_000

/** Runs an effect with the clock set back by this many days. */
export const daysAgo = (days: number) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (own) => {
    const behind = Math.round(days * dayMillis)
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: () => own.currentTimeMillisUnsafe() - behind,
      currentTimeMillis: Effect.map(own.currentTimeMillis, (now) => now - behind),
      currentTimeNanosUnsafe: () => own.currentTimeNanosUnsafe() - BigInt(behind) * 1_000_000n,
      currentTimeNanos: Effect.map(own.currentTimeNanos, (now) => now - BigInt(behind) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => own.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: own.monotonicTimeNanos,
      sleep: (duration) => own.sleep(duration),
    }
    return Effect.provideService(effect, Clock.Clock, clock)
  })
