/**
 * Locks that a settlement needs, taken by statements of their own.
 *
 * PostgreSQL 18.4 crashes (every connection with it) where one statement both meets a row that changed under its lock and
 * prunes partitions while it runs: the recheck begins the pruning of the whole statement anew, and what it leaves behind
 * is used after it is gone. So whatever may have to wait for a row is locked first, and the statement that writes the
 * partitions finds every row as its snapshot has it.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Task } from "../Sender/Task.ts"
import { arrayOf } from "./PgArray.ts"

/**
 * Locks the queue rows of these deliveries, in id order and by key, whoever has them now: a second condition would be
 * taken for the better index.
 */
export const lockClaims = (sql: PgClient.PgClient, tasks: ReadonlyArray<Pick<Task, "deliveryId">>) =>
  sql`
    select count(*) from unnest(${arrayOf(tasks.map(({ deliveryId }) => deliveryId).sort())}::uuid[]) wanted(id)
    cross join lateral (select from delivery_queue where delivery_id = wanted.id for update) q`

/** Locks the lanes of these webhooks, in id order. */
export const lockLanes = (sql: PgClient.PgClient, webhookIds: Iterable<string>) =>
  sql`
    select from webhook_lanes where webhook_id = any(${arrayOf([...new Set(webhookIds)])}::uuid[])
    order by webhook_id for update`
