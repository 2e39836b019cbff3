/**
 * The deliveries of all webhooks of an account, newest first, with filters and a cursor.
 *
 * No index leads from an account to its deliveries: it would cost every delivery an entry. An account has few webhooks
 * (WEBHOOKS_PER_ACCOUNT), so the newest deliveries of each are read by its own index and merged. A page with a filter
 * looks at some 20,000 deliveries at most, and its cursor names the last delivery that it looked at, which may lie behind
 * the last one that it shows.
 *
 * The id of an event leads to the day on which it was accepted, by the memory of accepted events, and an email's id to the
 * time in it, where it carries one: only deliveries of that day, or after that time, are looked at.
 *
 * Deliveries that wait are found in the queue, and dead letters in their own table, which alone has those whose partition
 * was dropped. What is neither is looked for in the partitions of yesterday and today first, then in all of them.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { AccountId, SourceEventId, WebhookId } from "../../schemas/BrandedIds.ts"
import { type DeliveryList, type DeliveryRecord, DeliveryStatus } from "../../schemas/mail/Delivery.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import { eventTypes } from "../../schemas/mail/MailEvent.ts"
import { unstorable } from "../../schemas/Validation/Scalars.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { leastIdAt } from "../platform/Ids.ts"
import { seenKeyOf, timeOf } from "./Deliveries/SeenKey.ts"

export interface DeliveryFilter {
  /** Any text; one that is no status, no event type or no webhook of the account finds nothing. */
  readonly status?: string | undefined
  readonly eventType?: string | undefined
  readonly webhookId?: WebhookId | undefined
  /** Of the last attempt: a status (`404`), a class (`5xx`), or `none` where it got no answer. */
  readonly responseStatus?: string | undefined
  /** The `email_id` of the payload. */
  readonly emailId?: string | undefined
  /** The id under which the mail platform sent the event. */
  readonly eventId?: SourceEventId | undefined
  /** Milliseconds since the epoch: deliveries made from `since` on and before `until`. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly limit: number
  /** The `next_after_id` of the page before. */
  readonly afterId?: string | undefined
}

const hourMillis = 60 * 60_000
const dayMillis = 24 * hourMillis
/** Deliveries that a page with a filter looks at, over all webhooks; with their events, or of those that wait. */
const looked = 20_000
const lookedWithEvents = 5_000
const lowest = "00000000-0000-0000-0000-000000000000"
const highest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

const columns = "id, webhook_id, event_type, status, response_status, attempt, next_retry_at, created_at"
const letterColumns = `delivery_id as id, webhook_id, event_type, 'dead_letter' as status, response_status, attempt,
  null::timestamptz as next_retry_at, created_at`

interface Row extends Omit<DeliveryRecord, "next_retry_at" | "created_at"> {
  readonly next_retry_at: Date | null
  readonly created_at: Date
}

/** The row of an empty page has no `id`. */
type FoundRow = (Row | { readonly [Key in keyof Row]: null }) & {
  /** The last delivery that was looked at, where there may be more behind it. */
  readonly bound: string | null
}

/** Ids from `from` on and before `before`. */
interface Span {
  readonly from: string
  readonly before: string
}

/** Statuses from `low` to `high`; null: no answer. */
type Response = { readonly low: number; readonly high: number } | "none"

interface Asked extends Span {
  readonly accountId: AccountId
  readonly webhookId: WebhookId | null
  readonly status: string | null
  readonly eventType: string | null
  readonly response: Response | null
  readonly emailId: string | null
  readonly eventId: SourceEventId | null
  readonly limit: number
  /** The first id whose delivery is kept whole; before it dead letters are left. */
  readonly oldest: string
}

const later = (one: string, other: string) => one > other ? one : other
const earlier = (one: string, other: string) => one < other ? one : other

const recordOf = ({ bound: _, created_at, next_retry_at, ...row }: Row & { readonly bound: string | null }) => ({
  ...row,
  next_retry_at: next_retry_at?.toISOString() ?? null,
  created_at: created_at.toISOString(),
})

/** One row more than `limit` says that another page follows; so does a bound behind fewer rows. */
const pageOf = (rows: ReadonlyArray<FoundRow>, limit: number): DeliveryList => {
  const found = rows.flatMap((row) => row.id === null ? [] : [recordOf(row)])
  const items = found.slice(0, limit)
  const next = found.length > limit ? items.at(-1)!.id : rows[0]?.bound ?? null
  return { items, next_after_id: next }
}

/** The statuses that a filter names; undefined where it names none. */
const responseOf = (text: string): Response | undefined => {
  if (text === "none") return "none"
  if (/^[1-5]xx$/.test(text)) return { low: Number(text[0]) * 100, high: Number(text[0]) * 100 + 99 }
  return /^[1-5]\d\d$/.test(text) ? { low: Number(text), high: Number(text) } : undefined
}

/** SQL of whether an event's `source_id` and `body` are those that are asked for. */
const isEvent = (sql: PgClient.PgClient, { emailId, eventId }: Asked) =>
  sql.and([
    ...(eventId === null ? [] : [sql`source_id = ${eventId}`]),
    // The text is looked for first: it is found in few bodies, and only these are parsed.
    ...(emailId === null ? [] : [
      sql`strpos(body, ${`"email_id":${JSON.stringify(emailId)}`}) > 0 and body::json->>'email_id' = ${emailId}`,
    ]),
  ])

/** SQL of whether a row of this table is one of those that are asked for, beside its status and type. */
const fits = (sql: PgClient.PgClient, asked: Asked, table: "deliveries" | "dead_letters") => {
  const { emailId, eventId, response } = asked
  return sql.and([
    sql`true`,
    ...(response === null
      ? []
      : response === "none"
      ? [sql`response_status is null and error is not null`]
      : [sql`coalesce(response_status between ${response.low}::int and ${response.high}::int, false)`]),
    ...(emailId === null && eventId === null ? [] : table === "dead_letters"
      ? [isEvent(sql, asked)]
      // Row by row and by key; dead letters have their own copy, since they outlive the event.
      : [sql`coalesce((select ${isEvent(sql, asked)} from events where id = event_id offset 0), false)`]),
  ])
}

/** SQL of the account's webhooks, or of the one that is asked for. */
const hooks = (sql: PgClient.PgClient, { accountId, webhookId }: Asked) =>
  sql`select id from webhooks where account_id = ${accountId}::uuid and deleted_at is null
    and (${webhookId}::uuid is null or id = ${webhookId}::uuid)`

/** SQL that ends a statement: the newest rows of `scanned` that match, none behind `bound`. */
const shown = (sql: PgClient.PgClient, { limit }: Asked) =>
  sql`select (select id from bound) as bound, page.* from (select) always left join lateral (
      select ${sql.literal(columns)} from scanned
      where matches and id >= coalesce((select id from bound), ${lowest}::uuid)
      order by id desc limit ${limit + 1}
    ) page on true order by page.id desc`

/** SQL of the newest deliveries of a webhook `h`, `most` of them. */
const newestOf = (
  sql: PgClient.PgClient,
  asked: Asked,
  most: Statement.Fragment,
): Statement.Fragment => {
  const { before, from, oldest, status } = asked
  const all = sql`${sql.literal(columns)}, ${fits(sql, asked, "deliveries")} as fits`
  const letter = sql`${sql.literal(letterColumns)}, ${fits(sql, asked, "dead_letters")} as fits`
  const letters = (end: string) =>
    sql`select ${letter} from dead_letters
      where webhook_id = h.id and delivery_id >= ${from}::uuid and delivery_id < ${end}::uuid
      order by delivery_id desc limit ${most}`
  if (status === "dead_letter") return letters(before)
  // A range of one webhook, as in NewestDeliveries.ts: only the webhook's own index gives the order that begins with it.
  const deliveries = sql`select ${all} from deliveries
    where webhook_id >= h.id and webhook_id <= h.id and id >= ${from}::uuid and id < ${before}::uuid
      and (id >= ${oldest}::uuid or status <> 'dead_letter')
    order by webhook_id, id desc limit ${most}`
  return from >= oldest
    ? deliveries
    : sql`select * from ((${deliveries}) union all (${letters(earlier(before, oldest))})) both_kinds
        order by id desc limit ${most}`
}

const readsEvents = ({ emailId, eventId }: Asked) => emailId !== null || eventId !== null
const isFiltered = (asked: Asked) => asked.eventType !== null || asked.response !== null || readsEvents(asked)

/** SQL of a page among all deliveries, or all dead letters. */
const scan = (sql: PgClient.PgClient, asked: Asked) => {
  const { eventType, limit, status } = asked
  const filtered = isFiltered(asked) || status === "delivered" || status === "cancelled"
  // Without a filter the newest of each webhook are enough. Otherwise its share of the deliveries that are looked at.
  const most = filtered
    ? sql`(select greatest(${limit + 1}, ${
      readsEvents(asked) ? lookedWithEvents : looked
    } / greatest(count(*), 1)) from hooks)`
    : sql`${limit + 1}::bigint`
  return sql`
    with hooks as materialized (${hooks(sql, asked)}),
    scanned as materialized (
      select * from (
        select s.*, fits and (${eventType}::text is null or event_type = ${eventType})
            and (${status}::text is null or status = ${status}) as matches,
          row_number() over (partition by s.webhook_id order by s.id desc) as nth
        from hooks h cross join lateral (${newestOf(sql, asked, most)}) s
      ) numbered where matches or nth = ${most}
    ), bound as materialized (
      select id from scanned where nth = ${most} order by id desc limit 1
    )
    ${shown(sql, asked)}`
}

/** SQL of a page among the deliveries that wait: a row of the queue is at its first attempt, or at a retry. */
const waiting = (sql: PgClient.PgClient, asked: Asked) => {
  const { accountId, before, eventType, from, limit, status } = asked
  const most = isFiltered(asked) ? lookedWithEvents : limit + 1
  const within = sql`delivery_id >= ${from}::uuid and delivery_id < ${before}::uuid`
  return sql`
    with hooks as materialized (${hooks(sql, asked)}),
    newest as materialized (
      select delivery_id, row_number() over (order by delivery_id desc) as nth from (
        -- A range of one webhook, as above, so that a webhook with most of the queue does not make this a walk through it.
        select q.delivery_id from hooks h cross join lateral (
          select delivery_id from delivery_queue
          where webhook_id >= h.id and webhook_id <= h.id and claim is null
            and ${within} and (attempt = 1) = (${status} = 'pending')
          offset 0) q
        union all
        select delivery_id from delivery_queue
        where claim is not null and account_id = ${accountId}::uuid and webhook_id in (select id from hooks)
          and ${within} and (attempt = 1) = (${status} = 'pending')
      ) queued order by delivery_id desc limit ${most}
    ), scanned as materialized (
      select d.*, fits and d.status = ${status} and (${eventType}::text is null or d.event_type = ${eventType}) as matches
      -- The limit keeps this one look a delivery, each into its own partition.
      from newest cross join lateral (
        select ${sql.literal(columns)}, ${fits(sql, asked, "deliveries")} as fits from deliveries
        where id = newest.delivery_id limit 1) d
    ), bound as materialized (
      select delivery_id as id from newest where nth = ${most}
    )
    ${shown(sql, asked)}`
}

export class AccountDeliveries extends Context.Service<AccountDeliveries, {
  readonly list: (accountId: AccountId, filter: DeliveryFilter) => Effect.Effect<DeliveryList>
  /** The ids of the account's webhooks by the event types that they take. */
  readonly takers: (accountId: AccountId) => Effect.Effect<ReadonlyMap<EventType, ReadonlyArray<WebhookId>>>
}>()("bailiwick/services/webhooks/AccountDeliveries") {
  static readonly layer = (config: { readonly deliveredDays: number }) => Layer.effect(AccountDeliveries, make(config))
}

/** An empty page, for a filter that no delivery meets. */
const nothing: DeliveryList = { items: [], next_after_id: null }

const isOneOf = (known: ReadonlyArray<string>, text: string | undefined) => text === undefined || known.includes(text)

const make = Effect.fnUntraced(function* (config: { readonly deliveredDays: number }) {
  const { reads, wide } = yield* Database

  const read = (asked: Asked): Effect.Effect<ReadonlyArray<FoundRow>, SqlError.SqlError> =>
    asked.status === "pending" || asked.status === "retrying"
      ? wide<FoundRow>`${waiting(wide, asked)}`
      : reads<FoundRow>`${scan(reads, asked)}`

  /** The ids of deliveries that an event or email with these ids may have; null where there was no such event. */
  const spanOf = Effect.fnUntraced(function* (accountId: AccountId, { emailId, eventId }: DeliveryFilter) {
    // An email's events follow it. A day for clocks that differ.
    const sentAt = emailId === undefined ? 0 : timeOf(emailId)
    const from = sentAt === 0 ? lowest : leastIdAt(Math.max(0, sentAt - dayMillis))
    if (eventId === undefined) return { from, before: highest }
    const { before, key } = seenKeyOf(accountId, eventId)
    const [seen] = yield* reads<{ day: number }>`
      select extract(epoch from seen_on)::float8 * 1000 as day from seen_ids where key = ${key}::uuid
      union all
      select extract(epoch from seen_on)::float8 * 1000 from seen_events
      where account_id = ${accountId}::uuid and key = ${before}::uuid`
    // Its deliveries have their ids from the same moment; an hour for a clock that was set.
    return seen === undefined ? null : {
      from: later(from, leastIdAt(seen.day - hourMillis)),
      before: leastIdAt(seen.day + dayMillis + hourMillis),
    }
  })

  const list = Effect.fn("AccountDeliveries.list")(function* (accountId: AccountId, filter: DeliveryFilter) {
    const { afterId, emailId, eventId, eventType, limit, responseStatus, since, status, until, webhookId } = filter
    const response = responseStatus === undefined ? null : responseOf(responseStatus)
    const known = isOneOf(DeliveryStatus.literals, status) && isOneOf(eventTypes, eventType) &&
      [emailId, eventId].every((id) => id === undefined || unstorable(id) === undefined)
    if (!known || response === undefined || webhookId !== undefined && !isUuid(webhookId)) return nothing
    const span = yield* spanOf(accountId, filter)
    if (span === null) return nothing
    const today = Math.floor((yield* Clock.currentTimeMillis) / dayMillis)
    const asked: Asked = {
      accountId,
      webhookId: webhookId ?? null,
      status: status ?? null,
      eventType: eventType ?? null,
      response,
      emailId: emailId ?? null,
      eventId: eventId ?? null,
      limit,
      oldest: leastIdAt((today - config.deliveredDays - 1) * dayMillis),
      from: later(span.from, since === undefined ? lowest : leastIdAt(since)),
      before: earlier(earlier(span.before, until === undefined ? highest : leastIdAt(until)), afterId ?? highest),
    }
    const recent = leastIdAt((today - 1) * dayMillis)
    if (status === undefined || status === "delivered") {
      if (asked.from < recent && recent < asked.before) {
        const found = pageOf(yield* read({ ...asked, from: later(asked.from, recent) }), limit)
        if (found.next_after_id !== null) return found
      }
    }
    return pageOf(yield* read(asked), limit)
  }, Effect.orDie)

  const takers = Effect.fn("AccountDeliveries.takers")(function* (accountId: AccountId) {
    const rows = yield* reads<{ event: EventType; ids: ReadonlyArray<WebhookId> }>`
      select e.event, array_agg(w.id::text order by w.created_at desc, w.id desc) as ids
      from webhooks w cross join lateral unnest(w.events) e(event)
      where w.account_id = ${accountId}::uuid and w.deleted_at is null group by e.event`
    return new Map(rows.map(({ event, ids }) => [event, ids]))
  }, Effect.orDie)

  return AccountDeliveries.of({ list, takers })
})
