/**
 * One deadline length for every exchange in flight, kept by one fiber on Effect's Clock instead of a timer each.
 *
 * All deadlines are equally long, so a Set in order of insertion is in order of deadline: the fiber sleeps until the
 * oldest one's, expires what is due and sleeps again. A busy sender whose exchanges end in time wakes it once a
 * deadline's length.
 */
import { Clock, Effect, Latch } from "effect"
import type { HttpExchange } from "./HttpExchange.ts"

export interface Deadlines {
  readonly add: (exchange: HttpExchange) => void
  readonly remove: (exchange: HttpExchange) => void
}

// Deadlines that lie this close together share a wake-up.
const granularityMillis = 5

/** A scoped watch over exchanges of at most `timeoutMillis`; when the scope ends, whatever is in flight expires. */
export const make = Effect.fnUntraced(function* (timeoutMillis: number) {
  const clock = yield* Clock.Clock
  const inFlight = new Set<HttpExchange>()
  const busy = Latch.makeUnsafe(false)

  const expire = (before: number): number | null => {
    for (const exchange of inFlight) {
      if (exchange.startedAt > before) return exchange.startedAt - before
      exchange.expire()
    }
    busy.closeUnsafe()
    return null
  }

  yield* busy.await.pipe(
    Effect.andThen(Effect.sync(() => expire(clock.currentTimeMillisUnsafe() - timeoutMillis))),
    Effect.flatMap((wait) => wait === null ? Effect.void : Effect.sleep(Math.max(wait, granularityMillis))),
    Effect.forever,
    Effect.forkScoped,
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => expire(Infinity)))

  const deadlines: Deadlines = {
    add: (exchange) => {
      inFlight.add(exchange)
      if (inFlight.size === 1) busy.openUnsafe()
    },
    remove: (exchange) => {
      inFlight.delete(exchange)
    },
  }
  return deadlines
})
