/**
 * The row locks of settlements and of changes of the queue, taken by separate statements.
 *
 * PostgreSQL 18.4 crashes, with all connections, if one statement both rechecks a row that changed while it waited for
 * the row's lock, and prunes partitions at run time: the recheck starts the statement's pruning again and uses freed
 * memory. So rows are locked first, and the statement that writes the partitions finds each row as in its snapshot.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { WebhookId } from "../../../schemas/BrandedIds.ts"
import type { Task } from "../Sender/Task.ts"
import { arrayOf } from "./PgArray.ts"

/**
 * Locks the queue rows of these deliveries, in id order, whichever claim they have: with a second condition the planner
 * would choose another index than the primary key.
 */
export const lockClaims = (sql: PgClient.PgClient, tasks: ReadonlyArray<Pick<Task, "deliveryId">>) =>
  sql`
    select count(*) from unnest(${arrayOf(tasks.map(({ deliveryId }) => deliveryId).sort())}::uuid[]) wanted(id)
    cross join lateral (select from delivery_queue where delivery_id = wanted.id for update) q`

/** Locks the queue states (`webhook_lanes`) of these webhooks, in id order. */
export const lockQueueStates = (sql: PgClient.PgClient, webhookIds: Iterable<WebhookId>) =>
  sql`
    select from webhook_lanes where webhook_id = any(${arrayOf([...new Set(webhookIds)])}::uuid[])
    order by webhook_id for update`

/** Makes a webhook's queue due at `now` or earlier, in the current transaction, under the lock of its state. */
export const makeQueueDue = (sql: PgClient.PgClient, webhookId: WebhookId, now: Date) =>
  Effect.andThen(
    lockQueueStates(sql, [webhookId]),
    sql`
      update webhook_lanes set next_due_at = ${now}
      where webhook_id = ${webhookId}::uuid and (next_due_at is null or next_due_at > ${now})`,
  )
