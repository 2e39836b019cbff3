/**
 * Runs a command inside an actor: with the origin of the request that caused it, and only while the sender waits. After
 * its timeout the sender calls the service itself (Mailbox), and may since have made further changes. A command that is
 * late, from the sockets of a frozen process or from behind others in the mailbox, is therefore dropped: it would undo
 * those changes.
 *
 * A defect ends the command as well, and its sender calls the service at once. If the cluster saw the defect, it would
 * restart the actor, after a growing delay, and run its commands again.
 */
import { Cause, Clock, Effect } from "effect"
import { Snowflake } from "effect/cluster"
import { CurrentRequest } from "../../services/platform/observability/CurrentRequest.ts"
import { VersionFence } from "../../services/platform/database/VersionFence.ts"
import { Mailbox } from "../../services/platform/messaging/Mailbox.ts"

interface Asked<P> {
  /** Made by the sender; it contains the sending time by the database's clock. */
  readonly requestId: Snowflake.Snowflake
  readonly payload: P & { readonly origin: (typeof CurrentRequest)["Service"] }
}

/**
 * The handler of a command; `call` gets the payload without its origin. Interrupts when the sender's timeout has
 * passed, when `call` dies, and where the schema refuses this process: the sender then calls the service itself.
 */
export const asked =
  <P, A, E, R>(call: (command: Omit<P, "origin">) => Effect.Effect<A, E, R>) =>
  ({ payload, requestId }: Asked<P>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const { timeoutMillis } = yield* Mailbox
      const left = Snowflake.timestamp(requestId) + timeoutMillis - (yield* Clock.currentTimeMillis)
      if (left <= 0 || (yield* (yield* VersionFence).refusal) !== null) return yield* Effect.interrupt
      const { origin, ...command } = payload
      return yield* call(command).pipe(
        Effect.provideService(CurrentRequest, origin),
        Effect.timeoutOrElse({ duration: left, orElse: () => Effect.interrupt }),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logWarning("a command died inside its actor", Cause.die(defect)), Effect.interrupt)
        ),
      )
    })
