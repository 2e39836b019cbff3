/**
 * A command as an actor takes it: in the name of the request that caused it, and only while its sender waits. Whoever
 * sent it calls the service itself after that (Mailbox), and may have done more since. So what lay in a frozen process's
 * sockets, or waited behind others, is dropped: done late it would undo what came after it.
 *
 * A defect ends the command, too, and its sender asks the service at once. Seen by the cluster it would begin the actor
 * anew, later each time, and do what was sent to it once more.
 */
import { Cause, Clock, Effect } from "effect"
import { Snowflake } from "effect/cluster"
import { CurrentRequest } from "../../services/platform/observability/CurrentRequest.ts"
import { Mailbox } from "../../services/platform/messaging/Mailbox.ts"

interface Asked<P> {
  /** Made by the sender: it holds the time, by the clock that all processes share. */
  readonly requestId: Snowflake.Snowflake
  readonly payload: P & { readonly origin: (typeof CurrentRequest)["Service"] }
}

/**
 * The handler of a command: `call` gets the payload without its origin. Ends as interrupted once it is too late, and
 * where `call` dies.
 */
export const asked =
  <P, A, E, R>(call: (command: Omit<P, "origin">) => Effect.Effect<A, E, R>) =>
  ({ payload, requestId }: Asked<P>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const { timeoutMillis } = yield* Mailbox
      const left = Snowflake.timestamp(requestId) + timeoutMillis - (yield* Clock.currentTimeMillis)
      if (left <= 0) return yield* Effect.interrupt
      const { origin, ...command } = payload
      return yield* call(command).pipe(
        Effect.provideService(CurrentRequest, origin),
        Effect.timeoutOrElse({ duration: left, orElse: () => Effect.interrupt }),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logWarning("a command failed at its actor", Cause.die(defect)), Effect.interrupt)
        ),
      )
    })
