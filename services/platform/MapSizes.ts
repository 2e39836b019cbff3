/**
 * The gauge `bailiwick_map_entries`: the entries of the long-lived maps of this process, by the map's name, so that an
 * operator sees which map grows. docs/memory.md lists the maps and their bounds.
 */
import { Context, Effect, Layer, Metric, Schedule, type Scope } from "effect"

export class MapSizes
  extends Context.Reference<Map<string, Set<() => number>>>("bailiwick/services/platform/MapSizes", {
    defaultValue: () => new Map(),
  }) {}

/** Counts a map under this name until the scope ends; the entries of maps with the same name are added. */
export const counted = (name: string, size: () => number): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(MapSizes, (sizes) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => sizes.set(name, (sizes.get(name) ?? new Set()).add(size))),
      () => Effect.sync(() => sizes.get(name)?.delete(size)),
    )))

/** Entries of all maps of a name. */
export const sum = (sizes: ReadonlySet<() => number> | undefined): number =>
  [...sizes ?? []].reduce((all, size) => all + size(), 0)

const entries = Metric.gauge("bailiwick_map_entries", { description: "Entries of a long-lived map, by its name" })

/** Updates the gauge every 10 s. */
export const gaugedMaps = Layer.effectDiscard(Effect.gen(function* () {
  const sizes = yield* MapSizes
  yield* Effect.suspend(() =>
    Effect.forEach(sizes, ([map, all]) => Metric.update(Metric.withAttributes(entries, { map }), sum(all)), {
      discard: true,
    })
  ).pipe(Effect.repeat(Schedule.spaced("10 seconds")), Effect.forkScoped)
}))
