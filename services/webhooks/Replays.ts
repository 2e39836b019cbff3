/**
 * Replays ended deliveries: a new cycle of attempts from 1 under the same delivery id, by which a receiver recognises
 * it. A dead letter whose day was dropped meanwhile is restored completely, into the default partition.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type AccountId, DeliveryId, EventId, SourceEventId, type WebhookId } from "../../schemas/BrandedIds.ts"
import { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import { DeliveryNotFound, DeliveryUnderWay, WebhookNotFound } from "../../schemas/problems/WebhookProblems.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { Ids, leastIdAt } from "../platform/Ids.ts"
import { Jobs } from "../platform/messaging/Jobs.ts"
import { RateLimits } from "../platform/security/RateLimits.ts"
import { dueTopic } from "./Deliveries/DeliveryClaims.ts"
import { insertEvents } from "./Deliveries/CreateDeliveries.ts"
import { arrayOf } from "./Deliveries/PgArray.ts"
import { dayOf } from "./Deliveries/UuidDay.ts"
import { makeQueueDue } from "./Deliveries/RowLocks.ts"
import { defaultSample, sampleBody } from "./ReplaySample.ts"
import { countMissed } from "./MissedEvents.ts"
import { type ReplayArgs, replayJob, replayMissedJob, replayMissedTypeJob, replayTypeJob } from "./WebhookJobKinds.ts"

export interface Span {
  /** Milliseconds since the epoch: deliveries created from `since` on and before `until`. */
  readonly since: number
  readonly until: number | null
  /** `missed`: events that came while the webhook was paused, by the time at which they came. */
  readonly status: "dead_letter" | "delivered" | "missed"
  /** Events of this type only. */
  readonly eventType?: EventType | undefined
  /** Dead letters that were given up until then, in milliseconds since the epoch; until now where it is left out. */
  readonly askedAt?: number | undefined
}

/**
 * The number that a replay sends again, and the time of which that counts: a dead letter of later is no part of it. A
 * count by that time has what a replay of dead letters has yet to send. For other replays the time changes nothing.
 */
export interface ReplayStarted {
  readonly replayed: number
  readonly asked_at: string
}

const perMinute = 10

/** Finds what is asked for, counts the request, and gives the command, for the transaction of a receipt. */
type Asking<A, E, E2> = Effect.Effect<Effect.Effect<A, E | SqlError.SqlError, InTransaction>, E2 | RateLimited>

/** What one look at a span finds. */
export interface Ended {
  /** Ascending. */
  readonly ids: ReadonlyArray<DeliveryId>
  /** Where the next look begins; null: nothing is left. */
  readonly next: string | null
}

export class Replays extends Context.Service<Replays, {
  /** Queues a sample event for one webhook, whatever it subscribes to, unless it is paused. */
  readonly test: (
    accountId: AccountId,
    webhookId: WebhookId,
    event?: EventType,
  ) => Asking<{ readonly queued: boolean; readonly url: string }, WebhookNotFound, WebhookNotFound>
  /** Replays one ended delivery. */
  readonly one: (
    accountId: AccountId,
    deliveryId: DeliveryId,
  ) => Asking<void, DeliveryUnderWay, DeliveryNotFound | DeliveryUnderWay>
  /** How many deliveries `many` would send again; sends none. */
  readonly count: (
    accountId: AccountId,
    webhookId: WebhookId,
    span: Span,
  ) => Effect.Effect<number, WebhookNotFound | RateLimited>
  /** Starts the replay of a span's ended deliveries, or missed events; returns their number. */
  readonly many: (
    accountId: AccountId,
    webhookId: WebhookId,
    span: Span,
  ) => Asking<ReplayStarted, never, WebhookNotFound>
  /** The next of a span's ended deliveries after `from`, `limit` at most; for the job. */
  readonly ended: (args: ReplayArgs, from: string, limit: number) => Effect.Effect<Ended, SqlError.SqlError>
  /** Queues ended deliveries of a webhook again, in the current transaction; returns their number. */
  readonly again: (webhookId: WebhookId, ids: ReadonlyArray<DeliveryId>) => Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/webhooks/Replays") {
  static readonly layer = Layer.suspend(() => Layer.effect(Replays, make))
}

/**
 * Deliveries that one look for a type reads: of a rare type a thousand may lie among millions, which no statement reads
 * in its time.
 */
const looked = 20_000

const make = Effect.gen(function* () {
  const { sql, wide } = yield* Database
  const audit = yield* Audit
  const wakeUps = yield* WakeUps
  const jobs = yield* Jobs
  const limits = yield* RateLimits

  const limited = Effect.fnUntraced(function* (kind: "test" | "replay" | "count", accountId: AccountId) {
    const key = `webhooks.${kind}:${accountId}`
    const taken = yield* limits.take({ key, limit: perMinute, windowMillis: 60_000 }).pipe(Effect.orDie)
    if (!taken.allowed) return yield* new RateLimited({ retry_after: taken.retryAfterSeconds })
  })

  const record = (accountId: AccountId, action: string, subject: string, details = {}) =>
    audit.append({ action, actor: `account:${accountId}`, subject, outcome: "done", details })

  const find = Effect.fnUntraced(function* (accountId: AccountId, webhookId: WebhookId) {
    const [row] = isUuid(webhookId)
      ? yield* sql<{ id: WebhookId; url: string; is_active: boolean }>`
        select id, url, is_active from webhooks
        where id = ${webhookId}::uuid and account_id = ${accountId}::uuid and deleted_at is null for share`
      : []
    return row ?? (yield* new WebhookNotFound())
  })

  const test: Replays["Service"]["test"] = Effect.fn("Replays.test")(
    function* (accountId, webhookId, event = defaultSample) {
      yield* find(accountId, webhookId).pipe(Effect.catchTag("SqlError", Effect.die))
      yield* limited("test", accountId)
      return Effect.gen(function* () {
        const webhook = yield* find(accountId, webhookId)
        if (!webhook.is_active) return { queued: false, url: webhook.url }
        const now = new Date(yield* Clock.currentTimeMillis)
        const [fresh, deliveryId] = yield* (yield* Ids).batch(2)
        const eventId = EventId.make(fresh!)
        const sourceId = SourceEventId.make(`test-${eventId}`)
        const body = sampleBody(event, eventId, now)
        const deliveries = [{ id: DeliveryId.make(deliveryId!), webhookId: webhook.id, claimed: false }]
        yield* insertEvents(
          sql,
          [{ id: eventId, accountId, event, sourceId, body, deliveries }],
          { now, leaseUntil: now },
        )
        yield* record(accountId, "webhook.tested", `webhook:${webhook.id}`, { event })
        yield* sql.afterCommit(wakeUps.notify(dueTopic))
        return { queued: true, url: webhook.url }
      })
    },
  )

  /** SQL of whether a delivery or a dead letter is of the type that is asked for. */
  const isOf = (eventType: EventType | undefined) =>
    eventType === undefined ? sql`true` : sql`event_type = ${eventType}`

  const ended: Replays["Service"]["ended"] = Effect.fnUntraced(function* (args, from, limit) {
    const { asked_at, event_type, status, to, webhook_id } = args
    const look = event_type === undefined ? limit : looked
    const seen = status === "dead_letter"
      ? sql`
        select delivery_id as id, event_type, died_at <= ${asked_at ?? "infinity"} as fits from dead_letters
        where webhook_id = ${webhook_id}::uuid and delivery_id > ${from}::uuid and delivery_id < ${to}::uuid
        order by delivery_id limit ${look}`
      : sql`
        select id, event_type, status = 'delivered' as fits from deliveries
        where webhook_id = ${webhook_id}::uuid and id > ${from}::uuid and id < ${to}::uuid
        order by id limit ${look}`
    const [found] = yield* sql<{ ids: ReadonlyArray<DeliveryId>; last: string | null }>`
      with seen as materialized (${seen})
      select array(select id from seen where fits and ${isOf(event_type)} order by id limit ${limit}) as ids,
        (select id from seen order by id offset ${look - 1}) as last`
    const { ids, last } = found!
    return { ids, next: ids.length === limit ? ids.at(-1)! : last }
  })

  /** Deletes dead letters; restores deliveries and events whose partition was dropped from them. */
  const restoreDeadLetters = Effect.fnUntraced(function* (webhookId: WebhookId, ids: ReadonlyArray<DeliveryId>) {
    yield* sql`
      with letter as (
        -- Deletes the dead letters.
        delete from dead_letters where webhook_id = ${webhookId}::uuid and delivery_id = any(${[...ids]}::uuid[])
        returning *
      ), lost as materialized (
        -- Those whose delivery was dropped.
        select l.* from letter l where not exists (select from deliveries d where d.id = l.delivery_id)
      ), event as (
        -- Restores their events.
        insert into events (id, account_id, source_id, event, body, created_at)
        select event_id, account_id, source_id, event_type, body, created_at from lost
        on conflict do nothing
      ), attempt as (
        -- Restores their attempts.
        insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status, error,
          response_headers, response_body)
        select l.delivery_id, (a.value->>'cycle')::int, (a.value->>'attempt')::int, -a.ordinality,
          (a.value->>'started_at')::timestamptz, (a.value->>'duration_ms')::int, (a.value->>'response_status')::int,
          a.value->>'error', nullif(a.value->'response_headers', 'null'), a.value->>'response_body'
        from lost l, jsonb_array_elements(l.attempts) with ordinality a
      )
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, response_status,
        error, endpoint_url, response_body, created_at)
      select delivery_id, webhook_id, account_id, event_id, event_type, 'dead_letter', cycle, attempt, response_status,
        error, endpoint_url, response_body, created_at from lost`
  })

  const again: Replays["Service"]["again"] = Effect.fnUntraced(function* (webhookId, ids) {
    if (ids.length === 0) return 0
    // A deleted webhook keeps its dead letters, which are the only copies.
    const [hook] = yield* sql`
      select from webhooks where id = ${webhookId}::uuid and deleted_at is null for share`
    if (hook === undefined) return 0
    yield* restoreDeadLetters(webhookId, ids)
    const now = new Date(yield* Clock.currentTimeMillis)
    // Locks the rows first, by ids that are parameters and not joined, for the reason in Deliveries/RowLocks.ts.
    const was = yield* sql<{ id: DeliveryId; status: string }>`
      select id::text as id, status from deliveries
      where id = any(${arrayOf(ids)}::uuid[]) and webhook_id = ${webhookId}::uuid
        and status in ('delivered', 'dead_letter', 'cancelled')
      order by id for update`
    if (was.length === 0) return 0
    const [row] = yield* sql<{ n: number }>`
      with was as materialized (
        select id, status from unnest(${arrayOf(was.map((d) => d.id))}::uuid[],
          ${arrayOf(was.map((d) => d.status))}::text[]) w(id, status)
      ), replayed as (
        update deliveries d set status = 'pending', cycle = d.cycle + 1, attempt = 1, response_status = null,
          error = null, next_retry_at = null
        from was where d.id = was.id
        returning d.id, d.webhook_id, d.account_id, d.event_id, d.cycle, was.status as was
      ), queued as (
        insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
        select id, webhook_id, account_id, event_id, cycle, 1, ${now} from replayed
      ), counted as (
        insert into delivery_counts (webhook_id, day, status, n)
        select webhook_id, day, status, sum(n) from (
          select webhook_id, ${dayOf(sql, "id")} as day, was as status, -1 as n from replayed
          union all select webhook_id, ${dayOf(sql, "id")}, 'pending', 1 from replayed
        ) c group by webhook_id, day, status
      )
      select count(*)::int as n from replayed`
    yield* makeQueueDue(sql, webhookId, now)
    yield* sql.afterCommit(wakeUps.notify(dueTopic))
    return row!.n
  })

  const one: Replays["Service"]["one"] = Effect.fn("Replays.one")(function* (accountId, deliveryId) {
    if (!isUuid(deliveryId)) return yield* new DeliveryNotFound()
    const [row] = yield* sql<{ webhook_id: WebhookId; gone: boolean; ended: boolean }>`
      select d.webhook_id, w.deleted_at is not null as gone, d.ended from (
        select webhook_id, status in ('delivered', 'dead_letter', 'cancelled') as ended from deliveries
        where id = ${deliveryId}::uuid and account_id = ${accountId}::uuid
        union all
        select webhook_id, true from dead_letters
        where delivery_id = ${deliveryId}::uuid and account_id = ${accountId}::uuid
      ) d join webhooks w on w.id = d.webhook_id limit 1`.pipe(Effect.orDie)
    if (row === undefined) return yield* new DeliveryNotFound()
    yield* limited("replay", accountId)
    if (row.gone) return yield* new DeliveryUnderWay({ detail: "Its webhook was deleted." })
    const underWay = new DeliveryUnderWay({ detail: "It is pending or waits for a retry." })
    if (!row.ended) return yield* underWay
    return Effect.gen(function* () {
      if ((yield* again(row.webhook_id, [deliveryId])) === 0) return yield* underWay
      yield* record(accountId, "delivery.replayed", `delivery:${deliveryId}`)
    })
  })

  /** The ids between which a span lies, and how many deliveries of the webhook ended in it. */
  const countIn = Effect.fnUntraced(function* (webhookId: WebhookId, span: Span) {
    const from = leastIdAt(span.since)
    // Deliveries that end after now are not part of it: otherwise the job would replay its own replays.
    const now = yield* Clock.currentTimeMillis
    const to = leastIdAt(Math.min(span.until ?? Infinity, now))
    const asked_at = new Date(Math.min(span.askedAt ?? Infinity, now)).toISOString()
    if (span.status === "missed") {
      return {
        from,
        to,
        asked_at,
        n: yield* Effect.orDie(countMissed(wide, webhookId, { from, to, eventType: span.eventType })),
      }
    }
    const [counted] = yield* (span.status === "dead_letter"
      ? wide<{ n: number }>`select count(*)::int as n from dead_letters
        where webhook_id = ${webhookId}::uuid and delivery_id > ${from}::uuid and delivery_id < ${to}::uuid
          and died_at <= ${asked_at} and ${isOf(span.eventType)}`
      : wide<{ n: number }>`select count(*)::int as n from deliveries
        where webhook_id = ${webhookId}::uuid and id > ${from}::uuid and id < ${to}::uuid and status = 'delivered'
          and ${isOf(span.eventType)}`)
      .pipe(Effect.orDie)
    return { from, to, asked_at, n: counted!.n }
  })

  const count: Replays["Service"]["count"] = Effect.fn("Replays.count")(function* (accountId, webhookId, span) {
    const webhook = yield* find(accountId, webhookId).pipe(Effect.catchTag("SqlError", Effect.die))
    yield* limited("count", accountId)
    return (yield* countIn(webhook.id, span)).n
  })

  const many: Replays["Service"]["many"] = Effect.fn("Replays.many")(function* (accountId, webhookId, span) {
    const webhook = yield* find(accountId, webhookId).pipe(Effect.catchTag("SqlError", Effect.die))
    yield* limited("replay", accountId)
    const { asked_at, from, n, to } = yield* countIn(webhook.id, span)
    const started = { replayed: n, asked_at } satisfies ReplayStarted
    if (n === 0) return Effect.succeed(started)
    const { eventType, status } = span
    const type = eventType === undefined ? {} : { event_type: eventType }
    const args = { webhook_id: webhook.id, from, to, ...type }
    return Effect.gen(function* () {
      yield* status === "missed"
        ? jobs.add(eventType === undefined ? replayMissedJob : replayMissedTypeJob, args)
        : jobs.add(eventType === undefined ? replayJob : replayTypeJob, { ...args, asked_at, status })
      yield* record(accountId, "webhook.replayed", `webhook:${webhook.id}`, { deliveries: n, ...type })
      return started
    })
  })

  return Replays.of({ test, one, count, many, ended, again })
})
