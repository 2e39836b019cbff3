/**
 * The last check before each POST: whether the stream may still be served, by this process, as it was read. So no POST
 * begins after a revocation, a pause or a change of the endpoint has committed.
 */
import { Effect } from "effect"
import { servedStreams } from "./StreamRecord.ts"
import { together } from "./RequestBatcher.ts"

const most = 200

/** Reads a stream's status, many streams in one statement; null where the stream is gone. Runs until the scope ends. */
export const checks = Effect.gen(function* () {
  const { statuses } = yield* servedStreams
  return yield* together(
    (ids: ReadonlyArray<string>) =>
      Effect.map(statuses([...new Set(ids)]), (found) => {
        const known = new Map(found.map((status) => [status.id, status]))
        return ids.map((id) => known.get(id) ?? null)
      }),
    { most, lingerMillis: 0 },
  )
})
