/** The loops that workers are made of. */
import { Effect, Scope } from "effect"
import { VersionFence } from "../../services/platform/database/VersionFence.ts"
import { WorkerHeartbeats } from "../../services/platform/observability/WorkerHeartbeats.ts"
import type { Waiter } from "../../services/platform/messaging/WakeUps.ts"

/**
 * Forks a worker's loop into the current scope: runs `turn` again while it returns true, else waits for the wake-up
 * signal or `pollMillis`. A failed turn is logged and run again after `failedMillis`. No turn begins while the schema
 * refuses this program.
 */
export const loop = <E, R>(
  name: string,
  waiter: Waiter,
  pollMillis: number,
  turn: Effect.Effect<boolean, E, R>,
  failedMillis = 1_000,
) =>
  WorkerHeartbeats.running(name).pipe(Effect.andThen(
    Effect.flatMap(VersionFence, ({ admitted }) => admitted).pipe(
      Effect.andThen(turn),
      Effect.flatMap((more) => more ? Effect.void : waiter.wait(pollMillis)),
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logWarning(`${name} failed`, cause), Effect.sleep(failedMillis))
      ),
      Effect.forever,
      Effect.forkScoped,
    ),
  ))

/** A loop without a wake-up signal. */
export const every = <A, E, R>(name: string, millis: number, turn: Effect.Effect<A, E, R>, failedMillis?: number) =>
  loop(name, { wait: (max) => Effect.sleep(max) }, millis, Effect.as(turn, false), failedMillis)

/** Runs loops that end in parallel when the current scope closes, so that none waits for another to end. */
export const sideBySide = <A, E, R>(loops: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Effect.scope,
    (scope) => Effect.flatMap(Scope.fork(scope, "parallel"), (ending) => Scope.provide(loops, ending)),
  )
