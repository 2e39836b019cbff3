/**
 * Sends commands to an actor. A mailbox queues the commands on one aggregate, which spares lock waits; their safety
 * comes from the version in the row, never from the mailbox. So where the actor does not answer (no runner, a full
 * mailbox, a timeout, the end of its process) the service is called directly, and the answer is the same.
 *
 * A command that timed out may still be under way: the direct call waits for it at the row's lock and sees its result.
 * An actor drops commands that it reaches too late (src/actors/Asked.ts).
 */
import { Cause, Context, Effect, Option } from "effect"
import type { ClusterError } from "effect/cluster"

/** The errors of the cluster itself. */
export type ActorFailure =
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

const failures = new Set(["MailboxFull", "AlreadyProcessingMessage", "PersistenceError", "EntityNotAssignedToRunner"])

const isActorFailure = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && failures.has(String(error._tag))

export class Mailbox extends Context.Reference<{
  /** How long an actor may take, in milliseconds; 0: no actors here, the service is called at once. */
  readonly timeoutMillis: number
}>("bailiwick/services/platform/messaging/Mailbox", { defaultValue: () => ({ timeoutMillis: 2_000 }) }) {}

/** Sends a command through `actor`; `direct` does the same without an actor. */
export const send = <A, E, R, E2, R2>(
  actor: Effect.Effect<A, E, R>,
  direct: Effect.Effect<A, E2, R2>,
): Effect.Effect<A, Exclude<E, ActorFailure> | E2, R | R2> =>
  Effect.flatMap(Mailbox, ({ timeoutMillis }): Effect.Effect<A, Exclude<E, ActorFailure> | E2, R | R2> => {
    if (timeoutMillis === 0) return direct
    return actor.pipe(
      Effect.timeoutOption(timeoutMillis),
      // An interruption of the actor; an interruption of the caller itself does not come here.
      Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.succeedNone),
      Effect.flatMap((answer) =>
        Option.isSome(answer)
          ? Effect.succeed(answer.value)
          : Effect.andThen(Effect.logWarning("an actor did not answer a command: calling the service directly"), direct)
      ),
      Effect.catch((error): Effect.Effect<A, Exclude<E, ActorFailure> | E2, R2> =>
        isActorFailure(error)
          ? Effect.andThen(
            Effect.logWarning("an actor did not take a command: calling the service directly", error),
            direct,
          )
          : Effect.fail(error as Exclude<E, ActorFailure>)
      ),
    )
  })
