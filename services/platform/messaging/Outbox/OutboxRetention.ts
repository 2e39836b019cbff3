/** How long published rows stay in the outbox, so that they can be published again. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { BusStreams, streamNames } from "../../../../schemas/bus/BusStreams.ts"

const asLongAsTheStream: ReadonlyArray<StreamName> = ["LIFECYCLE", "TRANSFERS", "DIRECTORY"]
const otherwiseMillis = 15 * 60_000
const batch = 500

const keptMillis = (stream: StreamName) =>
  asLongAsTheStream.includes(stream) ? BusStreams[stream].maxAgeMillis : otherwiseMillis

/** Deletes rows that were published longer ago than their stream needs, in small batches; returns how many. */
export const purgePublished = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const now = yield* Clock.currentTimeMillis
  let purged = 0
  for (const stream of streamNames) {
    for (;;) {
      const rows = yield* sql`
        delete from outbox o using unnest(array(
          select id from outbox where stream = ${stream} and published_at < ${new Date(now - keptMillis(stream))}
          order by published_at limit ${batch} for update skip locked
        )) over(id) where o.id = over.id returning 1`
      purged += rows.length
      if (rows.length < batch) break
    }
  }
  return purged
})
