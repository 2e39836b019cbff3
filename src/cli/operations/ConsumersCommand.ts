/** `consumers`: how far the products of all projects are behind, and the streams that carry events to them. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { lagging, streaming } from "../../../services/lifecycle/Lag.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { database } from "../Instance.ts"
import { limitFlag, listFlags, printRows } from "../RowOutput.ts"

export const consumers = Command.make(
  "consumers",
  { ...listFlags, limit: limitFlag },
  Effect.fn("cli.consumers")(function* ({ limit, ...how }) {
    const { wide } = yield* Database
    yield* printRows(
      yield* lagging(wide, null, { limit, after: null }),
      (lag) => ({
        project_id: lag.project_id,
        consumer_id: lag.consumer_id,
        behind: lag.lag_events,
        seconds: lag.oldest_unacknowledged_seconds,
        snapshot_required: lag.snapshot_required,
        acknowledged_at: lag.acknowledged_at,
        runs: lag.installed_version,
      }),
      how,
      "no product follows any project yet",
    )
    if (!how.json) yield* Console.log("")
    yield* printRows(
      yield* streaming(wide, null),
      ({ attempts, consumer_id, delivery, failing_since, lag_events, project_id, status, stream_id }) => ({
        stream_id,
        project_id,
        consumer_id,
        delivery,
        status,
        behind: lag_events,
        failing_since,
        attempts,
      }),
      how,
      "no stream is set up",
    )
  }, Effect.provide(database)),
).pipe(
  Command.withDescription(
    "Lists consumers of lifecycle events, the furthest behind first, and the streams to products",
  ),
)
