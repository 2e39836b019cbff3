/**
 * What a receiver's consumer row says of delivery, moved on by its streams as by its cursor. Only a stream that leaves
 * nothing out has positions: what another one delivered says nothing of what came before.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Served } from "./Served.ts"

export const deliveredTo = (
  sql: PgClient.PgClient,
  { consumer, epoch, project_id }: Pick<Served, "consumer" | "epoch" | "project_id">,
  position: number,
  now: Date,
) =>
  sql`
    insert into lifecycle_consumers as t (project_id, consumer, delivered_epoch, delivered_position, delivered_at)
    values (${project_id}, ${consumer}, ${epoch}, ${position}, ${now})
    on conflict (project_id, consumer) do update
    set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
      delivered_at = excluded.delivered_at
    where t.delivered_epoch is null
      or (excluded.delivered_epoch, excluded.delivered_position) > (t.delivered_epoch, t.delivered_position)`
