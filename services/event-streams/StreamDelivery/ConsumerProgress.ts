/**
 * Moves the delivered position of a receiver's consumer row, as reads by cursor do. Only for a stream that leaves
 * nothing out: a delivery by another stream says nothing about the events before it.
 */
import type { PgClient } from "@effect/sql-pg"
import { countsOf, type Travelled } from "../../lifecycle/LatencyMetrics.ts"
import type { StreamRecord } from "./StreamRecord.ts"

/** `messages`: the delivered messages, whose times from the signature are counted. */
export const deliveredTo = (
  sql: PgClient.PgClient,
  { consumer, epoch, project_id }: Pick<StreamRecord, "consumer" | "epoch" | "project_id">,
  position: number,
  now: Date,
  messages: ReadonlyArray<Pick<Travelled, "signed_at">>,
) =>
  sql`
    insert into lifecycle_consumers as t (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
      to_delivery)
    values (${project_id}, ${consumer}, ${epoch}, ${position}, ${now},
      ${[...countsOf(messages.map(({ signed_at }) => now.getTime() - signed_at.getTime()))]})
    on conflict (project_id, consumer) do update
    set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
      delivered_at = excluded.delivered_at, to_delivery = lifecycle_counted(t.to_delivery, excluded.to_delivery)
    where t.delivered_epoch is null
      or (excluded.delivered_epoch, excluded.delivered_position) > (t.delivered_epoch, t.delivered_position)`
