/** Prunes notifications: kept are 400 days, and the newest 10,000 of an account. Inbox by inbox, with their counts. */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { inboxesTopic } from "./Notifications.ts"

const dayMillis = 24 * 60 * 60_000
const keptMillis = 400 * dayMillis

/** A notification that is not shown only serves to merge notices within its hour. */
const hiddenMillis = dayMillis
const batch = 1_000

export class NotificationRetention extends Context.Service<NotificationRetention, {
  /** Prunes everything that is too old or too much. */
  readonly prune: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/notifications/NotificationRetention") {
  static readonly layer = ({ perAccount }: { readonly perAccount: number } = { perAccount: 10_000 }) =>
    Layer.effect(
      NotificationRetention,
      Effect.gen(function* () {
        const { sql, wide } = yield* Database
        const wakeUps = yield* WakeUps

        /** Deletes at most a batch of an account's notifications; returns how many. */
        const pruneInbox = Effect.fnUntraced(function* (accountId: AccountId, before: Date) {
          const [inbox] = yield* sql<{ total: number }>`
            select total from inboxes where account_id = ${accountId}::uuid for no key update`
          const beyond = Math.max(0, (inbox?.total ?? 0) - perAccount)
          const [row] = yield* sql<{ n: number }>`
            with oldest as materialized (
              select id, created_at, row_number() over (order by created_at, id) as nth from (
                select id, created_at from notifications where account_id = ${accountId}::uuid and shown
                order by created_at, id limit ${batch}
              ) o
            ), gone as (
              delete from notifications n using oldest o
              where n.id = o.id and (o.nth <= ${beyond} or o.created_at < ${before}) returning n.read_at
            ), counted as (
              select count(*)::int as n, (count(*) filter (where read_at is null))::int as unread from gone
            ), inbox as (
              update inboxes i set version = version + 1, total = i.total - c.n, unread = i.unread - c.unread
              from counted c where i.account_id = ${accountId}::uuid and c.n > 0
            )
            select n from counted`
          if (row!.n > 0) yield* sql.afterCommit(wakeUps.notify(inboxesTopic))
          return row!.n
        }, sql.withTransaction)

        const prune = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const before = new Date(now - keptMillis)
          const full = yield* wide<{ id: AccountId }>`
            select account_id::text as id from inboxes where total > ${perAccount}
            union
            select account_id::text from notifications where created_at < ${before} and shown`
          for (const { id } of full) {
            yield* Effect.repeat(pruneInbox(id, before), { until: (pruned) => pruned === 0 })
          }
          // These are few among the shown ones, and have an index of their own.
          yield* wide`delete from notifications where not shown and created_at < ${new Date(now - hiddenMillis)}`
        }).pipe(Effect.withSpan("Retention.prune"))

        return NotificationRetention.of({ prune })
      }),
    )
}
