/**
 * Supervises an embedded server: one that ends unasked (killed for lack of memory, say), or that does not answer for
 * some 20 s (its disk was full), is started again on its port and its data. Clients that lost a connection make a new
 * one, as with any other server.
 */
import { Cause, Deferred, Effect, type Scope } from "effect"
import type { Ended } from "./ChildProcess.ts"
import type { EmbeddedError } from "./EmbeddedError.ts"

interface Server {
  readonly port: number
  /** Completes when the server has ended, for any reason. */
  readonly exited: Effect.Effect<Ended>
  /** Whether the server answers; completes within seconds. */
  readonly answers?: Effect.Effect<boolean>
}

/**
 * After a crash, wait before restarting: on a shutdown of all processes the signal arrives within that time, and the
 * server must not be restarted then.
 */
const restartDelay = "1 second"
const retryDelay = "5 seconds"
/**
 * A running server is asked at this interval; one that left this many questions in a row without an answer is stopped.
 */
const askedEvery = "5 seconds"
const unansweredAtMost = 3

/** Waits until the server no longer answers. */
const silence = Effect.fnUntraced(function* ({ answers }: Server) {
  if (answers === undefined) return yield* Effect.never
  for (let unanswered = 0; unanswered < unansweredAtMost;) {
    yield* Effect.sleep(askedEvery)
    unanswered = (yield* answers) ? 0 : unanswered + 1
  }
  return "does not answer"
})

/**
 * Starts a server and returns it, and starts it again whenever it ends, until the scope closes; fails where the first
 * start does. `start` takes the port to use, a free one where it is told none. `name` begins the log lines.
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
    Effect.sleep(restartDelay).pipe(
      Effect.andThen(Effect.logWarning(`${name} ${why}: starting it again`)),
      Effect.andThen(life(port)),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(cause as Cause.Cause<never>)
          : Effect.as(Effect.sleep(retryDelay), `did not start (${Cause.squash(cause)})`)
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
