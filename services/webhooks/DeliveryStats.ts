/**
 * Attempts by webhook and minute, of the last 30 days. The statements that settle deliveries add them
 * (Settlement/SettleDelivered.ts, Settlement/SettleUndelivered.ts), so they cost no statement of their own, and
 * CountCompaction.ts compacts them.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { DeliveryHours, DeliveryStatistics } from "../../schemas/mail/DeliveryStatistics.ts"
import { WebhookNotFound } from "../../schemas/problems/WebhookProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { pruneByWebhook } from "./PruneByWebhook.ts"
import { type Octave, octaveOf, withinOf } from "./Settlement/Octave.ts"

const minuteMillis = 60_000
const hourMillis = 60 * minuteMillis
const dayMillis = 24 * hourMillis
/** How long minutes are kept. */
const keptDays = 30
/** A page reads so much of each webhook at most. */
const pageMillis = dayMillis

/** Milliseconds since the epoch; by default the last 24 hours. */
export interface StatsSpan {
  readonly since?: number | undefined
  readonly until?: number | undefined
}

interface Row {
  readonly hooks: number
  /** The page's attempts by duration, the shortest first. */
  readonly octaves: ReadonlyArray<Octave>
  /** Null where there is no attempt in the page. */
  readonly minute: Date | null
  readonly delivered: number
  readonly failed: number
  readonly dead_letter: number
  readonly ms_average: number
  readonly ms_max: number
}

interface HourRow {
  readonly webhook_id: WebhookId
  readonly hour: Date
  readonly delivered: number
  readonly failed: number
  readonly dead_letter: number
}

type Newest = DeliveryHours["newest"][number]

interface NewestRow extends Omit<Newest, "created_at"> {
  readonly created_at: Date
}

/** Rows in the order of their webhooks. */
const hoursOf = (rows: ReadonlyArray<HourRow>): DeliveryHours["items"] => {
  const items = new Map<WebhookId, Array<DeliveryHours["items"][number]["hours"][number]>>()
  for (const { hour, webhook_id, ...counts } of rows) {
    const hours = items.get(webhook_id) ?? []
    hours.push({ hour: hour.toISOString(), ...counts })
    items.set(webhook_id, hours)
  }
  return [...items].map(([webhook_id, hours]) => ({ webhook_id, hours }))
}

const minuteOf = (millis: number) => Math.floor(millis / minuteMillis) * minuteMillis
const stamp = (millis: number) => new Date(millis).toISOString()

export class DeliveryStats extends Context.Service<DeliveryStats, {
  /** The minutes of all webhooks of the account. */
  readonly ofAccount: (accountId: AccountId, span: StatsSpan) => Effect.Effect<DeliveryStatistics>
  /** The minutes of one webhook; WebhookNotFound where the account has no such webhook. */
  readonly ofWebhook: (
    accountId: AccountId,
    webhookId: WebhookId,
    span: StatsSpan,
  ) => Effect.Effect<DeliveryStatistics, WebhookNotFound>
  /** The last 24 hours of each webhook of the account, by the hour, and its newest delivery. */
  readonly hours: (accountId: AccountId) => Effect.Effect<DeliveryHours>
  /** Deletes minutes older than 30 days; returns how many rows. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/webhooks/DeliveryStats") {
  static readonly layer = Layer.effect(
    DeliveryStats,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database

      const page = Effect.fnUntraced(function* (accountId: AccountId, webhookId: WebhookId | null, span: StatsSpan) {
        const now = yield* Clock.currentTimeMillis
        // The minute that has begun counts.
        const latest = minuteOf(now) + minuteMillis
        const until = Math.min(span.until ?? latest, latest)
        const oldest = now - keptDays * dayMillis
        const since = minuteOf(Math.max(span.since ?? until - dayMillis, oldest))
        const end = Math.min(until, since + pageMillis)
        const rows = yield* reads<Row>`
          with hooks as materialized (
            select id from webhooks where account_id = ${accountId}::uuid and deleted_at is null
              and (${webhookId}::uuid is null or id = ${webhookId}::uuid)
          ), attempts as materialized (
            select m.* from hooks h join delivery_minutes m on m.webhook_id = h.id
            where m.minute >= ${new Date(since)} and m.minute < ${new Date(end)}
          )
          select (select count(*)::int from hooks) as hooks, (
            select coalesce(jsonb_agg(jsonb_build_object('n', o.n, 'ms', o.ms) order by o.ms), '[]') from (
              select sum(n) as n, sum(ms_sum) / sum(n) as ms from attempts
              group by coalesce(ms_octave, ${sql.literal(octaveOf("(ms_sum / n)::integer"))})
            ) o
          ) as octaves, page.* from (select) always left join lateral (
            select m.minute, coalesce(sum(m.n) filter (where m.outcome = 'delivered'), 0)::float8 as delivered,
              coalesce(sum(m.n) filter (where m.outcome = 'failed'), 0)::float8 as failed,
              coalesce(sum(m.n) filter (where m.outcome = 'dead_letter'), 0)::float8 as dead_letter,
              round(sum(m.ms_sum) / sum(m.n))::float8 as ms_average, max(m.ms_max) as ms_max
            from attempts m group by m.minute
          ) page on true order by page.minute`
        const items = rows.flatMap(({ hooks: _hooks, octaves: _octaves, minute, ...row }) =>
          minute === null ? [] : [{ minute: minute.toISOString(), ...row }]
        )
        const next_since = end < until ? stamp(end) : null
        const { hooks, octaves } = rows[0]!
        const statistics = { items, ms_p50: withinOf(octaves, 0.5), ms_p99: withinOf(octaves, 0.99), next_since }
        return { hooks, statistics }
      }, Effect.orDie)

      const hours = Effect.fn("DeliveryStats.hours")(function* (accountId: AccountId) {
        const now = yield* Clock.currentTimeMillis
        // With the hour that has begun.
        const since = Math.floor(now / hourMillis) * hourMillis - 23 * hourMillis
        const items = hoursOf(
          yield* reads<HourRow>`
            select m.webhook_id, to_timestamp(floor(extract(epoch from m.minute) / 3600) * 3600) as hour,
              coalesce(sum(m.n) filter (where m.outcome = 'delivered'), 0)::float8 as delivered,
              coalesce(sum(m.n) filter (where m.outcome = 'failed'), 0)::float8 as failed,
              coalesce(sum(m.n) filter (where m.outcome = 'dead_letter'), 0)::float8 as dead_letter
            from webhooks w join delivery_minutes m on m.webhook_id = w.id
            where w.account_id = ${accountId}::uuid and w.deleted_at is null and m.minute >= ${new Date(since)}
            group by 1, 2 order by 1 desc, 2`,
        )
        // A range of one webhook, for the reason in NewestDeliveries.ts.
        const newest = yield* reads<NewestRow>`
          select w.id::text as webhook_id, d.id::text as delivery_id, d.status, d.created_at from webhooks w
          cross join lateral (
            select id, status, created_at from deliveries where webhook_id >= w.id and webhook_id <= w.id
            order by webhook_id, id desc limit 1
          ) d
          where w.account_id = ${accountId}::uuid and w.deleted_at is null order by w.id desc`
        return { items, newest: newest.map((one) => ({ ...one, created_at: one.created_at.toISOString() })) }
      }, Effect.orDie)

      const prune = Effect.gen(function* () {
        const oldest = new Date((yield* Clock.currentTimeMillis) - keptDays * dayMillis)
        const where = sql`minute < ${oldest}`
        return yield* pruneByWebhook(sql, { table: "delivery_minutes", where, order: "minute", batch: 10_000 })
      })

      return DeliveryStats.of({
        ofAccount: (accountId, span) => Effect.map(page(accountId, null, span), ({ statistics }) => statistics),
        ofWebhook: Effect.fn("DeliveryStats.ofWebhook")(function* (accountId, webhookId, span) {
          if (!isUuid(webhookId)) return yield* new WebhookNotFound()
          const { hooks, statistics } = yield* page(accountId, webhookId, span)
          return hooks === 0 ? yield* new WebhookNotFound() : statistics
        }),
        hours,
        prune,
      })
    }),
  )
}
