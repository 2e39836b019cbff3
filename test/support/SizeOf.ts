/** The number of entries in this process's long-lived maps that are counted under a name. */
import { Effect } from "effect"
import { MapSizes, sum } from "../../services/platform/MapSizes.ts"

export const sizeOf = (name: string): Effect.Effect<number> => Effect.map(MapSizes, (sizes) => sum(sizes.get(name)))
