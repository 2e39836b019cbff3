/**
 * Events that came while a webhook was paused. Acceptance notes them (`missed_events`) and makes no delivery of them; a
 * replay that the account asks for makes the deliveries. Each is made once, also where two replays overlap or the program
 * is killed: the statement that writes a delivery deletes its note. A note is kept for as long as its event.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { DeliveryId, type EventId, type WebhookId } from "../../schemas/BrandedIds.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids, leastIdAt } from "../platform/Ids.ts"
import { dueTopic } from "./Deliveries/DeliveryClaims.ts"
import { arrayOf } from "./Deliveries/PgArray.ts"
import { makeQueueDue } from "./Deliveries/RowLocks.ts"
import { dayOf } from "./Deliveries/UuidDay.ts"
import { pruneByWebhook } from "./PruneByWebhook.ts"

/** Bounds of event ids: `from` and `to` exclusive. */
export interface MissedSpan {
  readonly from: string
  readonly to: string
  /** Events of this type only. */
  readonly eventType?: EventType | undefined
}

/** How many events of the span the webhook missed; `sql` may be a client with a longer timeout. */
export const countMissed = (sql: PgClient.PgClient, webhookId: WebhookId, { eventType, from, to }: MissedSpan) =>
  Effect.map(
    sql<{ n: number }>`
      select count(*)::int as n from missed_events m join events e on e.id = m.event_id
      where m.webhook_id = ${webhookId}::uuid and m.event_id > ${from}::uuid and m.event_id < ${to}::uuid
        and (${eventType ?? null}::text is null or e.event = ${eventType ?? null})`,
    ([row]) => row!.n,
  )

/** A delivery's id with the time of its event: both are kept for the same days. */
const deliveryIdOf = (eventId: EventId, fresh: string) => DeliveryId.make(eventId.slice(0, 14) + fresh.slice(14))

/** Notes that one look for a type reads, since few of a webhook's events may be of the type. */
const looked = 5_000

export const missedEvents = Effect.gen(function* () {
  const { sql } = yield* Database
  const wakeUps = yield* WakeUps

  /** Ids of events that the webhook missed, ascending, and where the next look begins (null: nothing is left); for the job. */
  const next = Effect.fnUntraced(function* (webhookId: WebhookId, { eventType, from, to }: MissedSpan, limit: number) {
    const look = eventType === undefined ? limit : looked
    const [found] = yield* sql<{ ids: ReadonlyArray<EventId>; last: string | null }>`
      with seen as materialized (
        select event_id as id from missed_events
        where webhook_id = ${webhookId}::uuid and event_id > ${from}::uuid and event_id < ${to}::uuid
        order by event_id limit ${look}
      )
      select array(
          select id from seen
          where ${eventType ?? null}::text is null
            or exists (select from events where id = seen.id and event = ${eventType ?? null})
          order by id limit ${limit}
        ) as ids, (select id from seen order by id offset ${look - 1}) as last`
    const { ids, last } = found!
    return { ids, next: ids.length === limit ? ids.at(-1)! : last }
  })

  /** Makes the deliveries of these missed events, in the current transaction; returns their number. */
  const deliver = Effect.fnUntraced(function* (webhookId: WebhookId, eventIds: ReadonlyArray<EventId>) {
    if (eventIds.length === 0) return 0
    const [hook] = yield* sql`
      select from webhooks where id = ${webhookId}::uuid and deleted_at is null for share`
    if (hook === undefined) return 0
    const now = new Date(yield* Clock.currentTimeMillis)
    const fresh = yield* (yield* Ids).batch(eventIds.length)
    const [row] = yield* sql<{ n: number }>`
      with wanted as materialized (
        select * from unnest(${arrayOf(eventIds)}::uuid[],
          ${arrayOf(eventIds.map((id, i) => deliveryIdOf(id, fresh[i]!)))}::uuid[]) w(event_id, delivery_id)
      ), noted as (
        -- Deletes the notes; of two concurrent statements only one finds each.
        delete from missed_events m using wanted w where m.webhook_id = ${webhookId}::uuid and m.event_id = w.event_id
        returning w.event_id, w.delivery_id
      ), event as materialized (
        -- The events, read by key, row by row; events of a dropped day are gone.
        select n.delivery_id, e.id, e.account_id, e.event, e.created_at from noted n
        cross join lateral (select id, account_id, event, created_at from events where id = n.event_id offset 0) e
      ), delivery as (
        insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
        select delivery_id, ${webhookId}::uuid, account_id, id, event, 'pending', 1, 1, created_at from event
      ), queued as (
        insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
        select delivery_id, ${webhookId}::uuid, account_id, id, 1, 1, ${now} from event
      ), counted as (
        insert into delivery_counts (webhook_id, day, status, n)
        select ${webhookId}::uuid, day, 'pending', count(*)
        from (select ${dayOf(sql, "delivery_id")} as day from event) d group by day
      )
      select count(*)::int as n from event`
    yield* makeQueueDue(sql, webhookId, now)
    yield* sql.afterCommit(wakeUps.notify(dueTopic))
    return row!.n
  })

  return { next, deliver }
})

/** Deletes the notes of events that are older than `oldest` (milliseconds), and those of deleted webhooks. */
export const pruneMissed = (sql: PgClient.PgClient, oldest: number) =>
  pruneByWebhook(sql, {
    table: "missed_events",
    // One bound in both cases, since an alternative of two would read every note.
    where: sql`event_id < case when w.deleted_at is null then ${leastIdAt(oldest)}::uuid
      else 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid end`,
    order: "event_id",
    batch: 10_000,
  })
