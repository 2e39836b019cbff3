/** How long published rows stay in the outbox, so that they can be published again. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { BusStreams, streamNames } from "../../../../schemas/bus/BusStreams.ts"
import { prune } from "../../database/Prune.ts"

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
    const where = sql`stream = ${stream} and published_at < ${new Date(now - keptMillis(stream))}`
    purged += yield* prune(sql, { table: "outbox", where, order: "published_at", batch })
  }
  return purged
})
