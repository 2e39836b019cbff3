/**
 * What became of an event, as read now: whether a consumer of its project has it, and whether one has acknowledged it
 * after committing it. Kept apart from each other and from the decision (specification 000, What the service does).
 */
import type { PgClient } from "@effect/sql-pg"
import { encodeCursor } from "../../schemas/identity/Cursor.ts"
import { type Acknowledgement, type Delivery, undelivered } from "../../schemas/identity/Lifecycle.ts"

/** Columns of `factsOf`, beside whatever else a statement selects. */
export interface FactRow {
  /** The event; null where nothing was told yet. */
  readonly told: string | null
  readonly queued_at: Date | null
  readonly delivered_at: Date | null
  readonly acknowledged_at: Date | null
  readonly acknowledged_epoch: number | null
  readonly acknowledged_position: bigint | null
  readonly acknowledged_version: string | null
}

/**
 * SQL of two lateral joins over the event of alias `e` (epoch, position, project_id; may be absent), and of the columns
 * that `deliveryOf` and `acknowledgementOf` read.
 */
export const factsOf = (sql: PgClient.PgClient) => ({
  columns: sql.literal(`e.id::text as told, e.created_at as queued_at, had.delivered_at, done.acknowledged_at,
    done.acknowledged_epoch, done.acknowledged_position, done.installed_version as acknowledged_version`),
  joins: sql.literal(`left join lateral (
      select min(c.delivered_at) as delivered_at from lifecycle_consumers c
      where c.project_id = e.project_id and (c.delivered_epoch, c.delivered_position) >= (e.epoch, e.position)
    ) had on true
    left join lateral (
      select c.acknowledged_at, c.acknowledged_epoch, c.acknowledged_position, c.installed_version
      from lifecycle_consumers c
      where c.project_id = e.project_id and (c.acknowledged_epoch, c.acknowledged_position) >= (e.epoch, e.position)
      order by c.acknowledged_at limit 1
    ) done on true`),
})

export const deliveryOf = ({ delivered_at, queued_at, told }: FactRow): Delivery =>
  told === null ? undelivered : {
    state: delivered_at === null ? "queued" : "delivered",
    event_id: told,
    queued_at: queued_at?.toISOString() ?? null,
    last_attempt_at: delivered_at?.toISOString() ?? null,
    attempts: delivered_at === null ? 0 : 1,
  }

export const acknowledgementOf = (row: FactRow, installedVersion: string | null): Acknowledgement => {
  const { acknowledged_at, acknowledged_epoch, acknowledged_position, acknowledged_version, told } = row
  if (acknowledged_at === null || acknowledged_epoch === null || acknowledged_position === null) {
    return {
      state: told === null ? "none" : "pending",
      installed_version: installedVersion,
      cursor: null,
      acknowledged_at: null,
    }
  }
  return {
    state: "acknowledged",
    installed_version: acknowledged_version,
    cursor: encodeCursor({ epoch: acknowledged_epoch, position: Number(acknowledged_position) }),
    acknowledged_at: acknowledged_at.toISOString(),
  }
}
