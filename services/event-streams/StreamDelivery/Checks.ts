/**
 * The last question before anything leaves: may this stream still be served, by us, as it was read? Asked for each POST,
 * so that nothing begins after a revocation, a pause or another endpoint has committed.
 */
import { Effect } from "effect"
import { servedStreams } from "./Served.ts"
import { together } from "./Together.ts"

const most = 200

/** Asks for a stream's standing; null where it is gone. Runs until the scope ends. */
export const checks = Effect.gen(function* () {
  const { standings } = yield* servedStreams
  return yield* together(
    (ids: ReadonlyArray<string>) =>
      Effect.map(standings([...new Set(ids)]), (found) => {
        const known = new Map(found.map((standing) => [standing.id, standing]))
        return ids.map((id) => known.get(id) ?? null)
      }),
    { most, lingerMillis: 0 },
  )
})
