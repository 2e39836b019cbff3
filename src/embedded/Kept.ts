/**
 * A server of our own that goes on being there: one that ends unasked (killed for want of memory, say) is started again on
 * its port and its data, and whoever lost a connection makes it anew, as with any other server.
 */
import { Cause, Deferred, Effect, type Scope } from "effect"
import type { Ended } from "./Children.ts"
import type { EmbeddedError } from "./EmbeddedError.ts"

interface Server {
  readonly port: number
  /** Ends when the server has, asked or not. */
  readonly exited: Effect.Effect<Ended>
}

/** Who stops all processes at once stops the servers as well, and is not to find one again. */
const mourned = "1 second"
const between = "5 seconds"

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
      const { code, signal } = yield* server.exited
      return `ended with ${signal ?? code}`
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
