/**
 * Heartbeats of worker loops, for diagnostics: each process writes every ten seconds which loops it runs, and at a
 * clean stop that they have stopped. A process that died is recognised by its silence.
 */
import { Clock, Context, Effect, Layer, Schedule, type Scope } from "effect"
import { Database } from "../database/Database.ts"

const everyMillis = 10_000
const firstMillis = 1_000
const keptMillis = 24 * 3_600_000
/** A process that wrote nothing for three intervals counts as gone. */
const silentMillis = 3 * everyMillis

class Names extends Context.Reference<Set<string>>("bailiwick/services/platform/observability/WorkerHeartbeats/Names", {
  defaultValue: () => new Set(),
}) {}

/** Notes that a loop of this name runs in the current scope. */
const running = (name: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Names, (names) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => names.add(name)),
      () => Effect.sync(() => names.delete(name)),
    )))

const write = Effect.fnUntraced(function* (instance: string, names: ReadonlyArray<string>, stopped: boolean) {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    insert into worker_sightings (worker, instance, last_seen_at, stopped)
    select worker, ${instance}, ${new Date(now)}, ${stopped} from unnest(${[...names]}::text[]) worker
    on conflict (worker, instance) do update set last_seen_at = excluded.last_seen_at, stopped = excluded.stopped`
  yield* sql`delete from worker_sightings where last_seen_at < ${new Date(now - keptMillis)}`
})

/** Notes that a loop runs, and writes its heartbeat at once. */
const begun = (instance: string, name: string) => Effect.andThen(running(name), write(instance, [name], false))

/**
 * Whether a process runs a loop of this name. With `within`, whether a process ran it in the last so many milliseconds,
 * even if it has stopped since.
 */
const seen = Effect.fnUntraced(function* (name: string, within?: number) {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{ seen: boolean }>`
    select exists (
      select from worker_sightings
      where worker = ${name} and last_seen_at > ${new Date(now - (within ?? silentMillis))}
        and (not stopped or ${within !== undefined})
    ) as seen`
  return row!.seen
})

export const WorkerHeartbeats = {
  running,
  begun,
  seen,
  /** Writes the heartbeats of this process; `instance` is the process's name, new with each start. */
  layer: (instance: string) =>
    Layer.effectDiscard(Effect.gen(function* () {
      const names = yield* Names
      // Loops may end before this layer: all loops that were written as running are written as stopped.
      const known = new Set<string>()
      const seen = (stopped: boolean) =>
        Effect.suspend(() => {
          if (!stopped) names.forEach((name) => known.add(name))
          return write(instance, [...known].sort(), stopped)
        }).pipe(
          Effect.catchCause((cause) => Effect.logDebug("sightings of workers were not written", cause)),
        )
      yield* Effect.addFinalizer(() => seen(true))
      // Loops begin after this layer is built: write their first heartbeat soon, not after a whole interval.
      yield* seen(false).pipe(
        Effect.repeat(Schedule.spaced(everyMillis)),
        Effect.delay(firstMillis),
        Effect.forkScoped,
      )
    })),
}
