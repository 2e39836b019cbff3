/**
 * The reads of an account's notifications. Counts are columns of the inbox's row, so they cost the same however many
 * notifications there are; an answer's counts and items are of one snapshot. Every change of an inbox locks its row to
 * the commit.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId, ApiKeyId, NotificationId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { NotificationNotFound } from "../../schemas/problems/NotificationProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Principals, who } from "../authentication/Principals.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { notificationJson } from "./InboxShape.ts"
import { inboxesTopic } from "./Notifications.ts"

export interface ListRequest {
  readonly unread: boolean
  /** Any text; the list is empty where it is no category. */
  readonly category?: string | undefined
  /** 50 by default. With it or `after_id` the answer has `next_after_id`. */
  readonly limit?: number | undefined
  /**
   * The `next_after_id` of the page before. Nothing follows an id that the list does not have. A repeat within the hour
   * moves a notification to the top: the page after a moved one begins there, so none is missed and some come twice.
   */
  readonly after_id?: string | undefined
}

export class Inbox extends Context.Service<Inbox, {
  /** JSON text of a `NotificationList` of the credential's account, newest first. */
  readonly list: (credential: Credential["Service"], request: ListRequest) => Effect.Effect<string, InvalidCredentials>
  /** Marks a notification as read, which may be repeated; returns the JSON text of its `NotificationView`. */
  readonly markRead: (accountId: AccountId, id: NotificationId) => Effect.Effect<string, NotificationNotFound>
  /** Marks all present notifications as read; returns how many. Later ones wait for the lock, and stay unread. */
  readonly readAll: (accountId: AccountId) => Effect.Effect<number>
}>()("bailiwick/services/notifications/Inbox") {
  static readonly layer = Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const audit = yield* Audit
      const wakeUps = yield* WakeUps
      const principals = yield* Principals

      const list: Inbox["Service"]["list"] = Effect.fn("Inbox.list")(function* (credential, request) {
        const { after_id, category, limit = 50, unread } = request
        const paged = after_id !== undefined || request.limit !== undefined
        // `offset 0`: without it the planner puts the subquery into each of its uses, and reads the page three times.
        const [row] = yield* reads<{ key_id: ApiKeyId | null; body: string }>`
          with who as materialized (${who(reads, credential)})
          select key_id::text, (select row_to_json(v) from (select
            array_to_json(page.items[:${limit}::int]) as items,
            coalesce(i.total, 0) as total,
            coalesce(i.unread, 0) as unread
            ${
          paged
            ? reads`, case when cardinality(page.items) > ${limit} then page.items[${limit}]->>'id' end as next_after_id`
            : reads``
        }
            from (select array(
              select ${reads.literal(notificationJson)} from (
                select * from notifications
                where account_id = who.account_id and shown
                  ${unread ? reads`and read_at is null` : reads``}
                  ${category === undefined ? reads`` : reads`and category = ${category}`}
                  ${
          after_id === undefined ? reads`` : reads`and (created_at, id) < (
                    select created_at, id from notifications
                    where id = ${after_id}::uuid and account_id = who.account_id and shown)`
        }
                order by created_at desc, id desc limit ${limit + 1}
              ) n
            ) as items offset 0) page
          ) v)::text as body
          from who left join inboxes i on i.account_id = who.account_id`.pipe(Effect.orDie)
        return (yield* principals.seen(row)).body
      })

      /** Locks the inbox's row to the commit. */
      const hold = (accountId: AccountId) =>
        sql<{ unread: number }>`select unread from inboxes where account_id = ${accountId}::uuid for no key update`

      const changed = (accountId: AccountId, action: string, subject: string) =>
        Effect.andThen(
          audit.append({ action, actor: `account:${accountId}`, subject, outcome: "done" }),
          sql.afterCommit(wakeUps.notify(inboxesTopic)),
        )

      const one = (accountId: AccountId, id: NotificationId) =>
        sql<{ body: string }>`
          select ${sql.literal(notificationJson)}::text as body from notifications n
          where n.id = ${id}::uuid and n.account_id = ${accountId}::uuid and n.shown`

      const markRead: Inbox["Service"]["markRead"] = Effect.fn("Inbox.markRead")(
        function* (accountId, id) {
          if (!isUuid(id)) return yield* new NotificationNotFound()
          yield* hold(accountId)
          const now = new Date(yield* Clock.currentTimeMillis)
          const [done] = yield* sql`
            with inbox as (
              update inboxes set version = version + 1, unread = unread - 1
              where account_id = ${accountId}::uuid and exists (
                select from notifications
                where id = ${id}::uuid and account_id = ${accountId}::uuid and shown and read_at is null)
              returning version
            )
            update notifications n set read_at = ${now}, version = inbox.version from inbox
            where n.id = ${id}::uuid returning n.id`
          if (done !== undefined) yield* changed(accountId, "notification.read", `notification:${id.toLowerCase()}`)
          const [row] = yield* one(accountId, id)
          return row === undefined ? yield* new NotificationNotFound() : row.body
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
      )

      const readAll: Inbox["Service"]["readAll"] = Effect.fn("Inbox.readAll")(
        function* (accountId: AccountId) {
          const [inbox] = yield* hold(accountId)
          if (inbox === undefined || inbox.unread === 0) return 0
          const now = new Date(yield* Clock.currentTimeMillis)
          const [done] = yield* sql<{ n: number }>`
            with done as (
              update notifications set read_at = ${now}
              where account_id = ${accountId}::uuid and shown and read_at is null returning id
            ), inbox as (
              update inboxes set version = version + 1, unread = 0, read_all_version = version + 1, read_all_at = ${now}
              where account_id = ${accountId}::uuid
            )
            select count(*)::int as n from done`
          yield* changed(accountId, "notifications.read-all", `account:${accountId}`)
          return done!.n
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
      )

      return Inbox.of({ list, markRead, readAll })
    }),
  )
}
