/** The one shape of a worker: a turn while there is more, then the bell or the poll; a turn that fails is tried again. */
import { Effect, Scope } from "effect"
import { WorkerSightings } from "../../services/platform/observability/WorkerSightings.ts"
import type { Bell } from "../../services/platform/messaging/Bells.ts"

/**
 * Forks the loop into the current scope. `turn` gives whether there may be more at once; one that failed is tried again
 * after `failedMillis`.
 */
export const loop = <E, R>(
  name: string,
  bell: Bell,
  pollMillis: number,
  turn: Effect.Effect<boolean, E, R>,
  failedMillis = 1_000,
) =>
  WorkerSightings.running(name).pipe(Effect.andThen(turn.pipe(
    Effect.flatMap((more) => more ? Effect.void : bell.wait(pollMillis)),
    Effect.catchCause((cause) =>
      Effect.andThen(Effect.logWarning(`${name} failed`, cause), Effect.sleep(failedMillis))
    ),
    Effect.forever,
    Effect.forkScoped,
  )))

/** A loop that no bell wakes. */
export const every = <A, E, R>(name: string, millis: number, turn: Effect.Effect<A, E, R>, failedMillis?: number) =>
  loop(name, { wait: (max) => Effect.sleep(max) }, millis, Effect.as(turn, false), failedMillis)

/** Loops that end side by side with the current scope: what one still waits for is no wait for the others. */
export const sideBySide = <A, E, R>(loops: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Effect.scope,
    (scope) => Effect.flatMap(Scope.fork(scope, "parallel"), (ending) => Scope.provide(loops, ending)),
  )
