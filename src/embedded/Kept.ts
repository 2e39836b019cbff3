/**
 * A server of our own that goes on being there: one that ends unasked (killed for want of memory, say), or that runs and
 * answers nothing for some 20 s (its disk was full), is started again on its port and its data, and whoever lost a
 * connection makes it anew, as with any other server.
 */
import { Cause, Deferred, Effect, type Scope } from "effect"
import type { Ended } from "./Children.ts"
import type { EmbeddedError } from "./EmbeddedError.ts"

interface Server {
  readonly port: number
  /** Ends when the server has, asked or not. */
  readonly exited: Effect.Effect<Ended>
  /** Whether it answers; ends within seconds. */
  readonly answers?: Effect.Effect<boolean>
}

/** Who stops all processes at once stops the servers as well, and is not to find one again. */
const mourned = "1 second"
const between = "5 seconds"
/** A server that runs is asked so often; one that left so many questions in a row without an answer is ended. */
const askedEvery = "5 seconds"
const unansweredAtMost = 3

/** Waits until the server answers nothing any more. */
const silence = Effect.fnUntraced(function* ({ answers }: Server) {
  if (answers === undefined) return yield* Effect.never
  for (let unanswered = 0; unanswered < unansweredAtMost;) {
    yield* Effect.sleep(askedEvery)
    unanswered = (yield* answers) ? 0 : unanswered + 1
  }
  return "answers nothing"
})

/**
 * Gives the server that `start` starts (on the port that it is told, a free one where it is told none) and starts it again
 * whenever it ends, until the scope closes; fails where the first start does. `name` begins what is said of that.
 */
export const kept = Effect.fnUntraced(function* <A extends Server>(
  name: string,
  start: (port?: number) => Effect.Effect<A, EmbeddedError, Scope.Scope>,
) {
  const first = yield* Deferred.make<A, EmbeddedError>()
  const life = (port?: number) =>
    Effect.scoped(Effect.gen(function* () {
      const server = yield* start(port)
      yield* Deferred.succeed(first, server)
      const ended = Effect.map(server.exited, ({ code, signal }) => `ended with ${signal ?? code}`)
      return yield* Effect.raceFirst(ended, silence(server))
    }))
  const again = (port: number, why: string): Effect.Effect<never> =>
    Effect.sleep(mourned).pipe(
      Effect.andThen(Effect.logWarning(`${name} ${why}: starting it again`)),
      Effect.andThen(life(port)),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(cause as Cause.Cause<never>)
          : Effect.as(Effect.sleep(between), `did not start (${Cause.squash(cause)})`)
      ),
      Effect.flatMap((next) => again(port, next)),
    )
  yield* life().pipe(
    Effect.onError((cause) => Deferred.failCause(first, cause)),
    Effect.flatMap((why) => Effect.flatMap(Deferred.await(first), ({ port }) => again(port, why))),
    Effect.ignoreCause,
    Effect.forkScoped,
  )
  return yield* Deferred.await(first)
})
