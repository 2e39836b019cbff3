/**
 * The deadlines of all exchanges in flight, watched by one fiber on Effect's Clock instead of a timer for each.
 *
 * All deadlines are equally long, so a Set in order of insertion is in order of deadline. The fiber sleeps until the
 * oldest deadline, expires the exchanges that are due and sleeps again. While exchanges end in time, it wakes once per
 * deadline's length.
 */
import { Clock, Effect, Latch } from "effect"
import type { HttpExchange } from "./HttpExchange.ts"

export interface Deadlines {
  readonly add: (exchange: HttpExchange) => void
  readonly remove: (exchange: HttpExchange) => void
}

// Deadlines this close together are handled by one wake-up of the fiber.
const granularityMillis = 5

/** A scoped watch that expires exchanges after `timeoutMillis`; when the scope ends, all exchanges in flight expire. */
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
