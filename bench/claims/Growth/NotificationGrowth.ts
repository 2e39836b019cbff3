/** Ever more notifications of as many accounts, some of them read, some hidden and kept for coalescing. */
import { Effect, Layer } from "effect"
import { AccountId, type NotificationId } from "../../../schemas/BrandedIds.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { changes } from "../../../services/notifications/Live/ChangeFeed.ts"
import { Notifications } from "../../../services/notifications/Notifications.ts"
import type { Notice } from "../../../services/notifications/Notice.ts"
import { NotificationRetention } from "../../../services/notifications/NotificationRetention.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Mails } from "../../../services/platform/mail/Mails.ts"
import { type Area, idOf, numbered, platform, uuidOf } from "./Area.ts"

const accounts = 2_000
/** The accounts that statements ask for: their number of notifications stays the same. */
const steady = 50
const each = 100

const fill = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  const now = Date.now()
  const account = owner.literal(numbered(
    `case when n <= ${steady * each} then (n - 1) / ${each} else ${steady} + n % ${accounts - steady} end`,
  ))
  yield* owner`
    insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
    select ${owner.literal(numbered("n"))}, 1, false, to_timestamp(0), n || '@example.com', 'Bench', 'business', false,
      'active' from generate_series(0, ${accounts - 1}::bigint) n`
  yield* owner`
    insert into inboxes (account_id, epoch, version, total, unread)
    select ${owner.literal(numbered("n"))}, 'bench', ${rows}, ${each}, ${each / 2}
    from generate_series(0, ${accounts - 1}::bigint) n`
  // One of a hundred is hidden, and was announced within the last day.
  yield* owner`
    insert into notifications (id, account_id, shown, version, category, severity, title, body, href, count, coalesce_key,
      created_at, read_at)
    select ${owner.literal(idOf("ms", "n"))}, ${account}, n % 100 <> 0, case when n % 100 <> 0 then n end, 'alerts',
      'warning', 'A webhook fails', 'It did not answer.', '/webhooks', 1, case n % 3 when 0 then 'hook-' || n end,
      to_timestamp(ms / 1000.0), case when n % 2 = 0 and n % 100 <> 0 then to_timestamp(ms / 1000.0) end
    from (
      select n, ${now}::bigint - case n % 100 when 0 then n % 3600 * 1000 else n % 300 * 100000000 end as ms
      from generate_series(1, ${rows}::bigint) n
    ) x`
  yield* owner`vacuum analyze accounts, inboxes, notifications`
})

const services = Layer.mergeAll(
  Notifications.layer.pipe(Layer.provide(Mails.layer)),
  NotificationRetention.layer(),
  Inbox.layer.pipe(
    Layer.provide(Audit.layer),
    Layer.provide(Principals.layer.pipe(Layer.provide(Layer.merge(Cookies.layer([]), KeyUses.layer)))),
  ),
)

const statements: Area["statements"] = (fixture, run) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const { sql } = yield* Database
      const notifications = yield* Notifications
      const inbox = yield* Inbox
      const retention = yield* NotificationRetention
      const accountOf = (n: number) => AccountId.make(uuidOf(n))
      const notice = (n: number): Notice => ({
        accountId: accountOf(n),
        category: "alerts",
        severity: "warning",
        title: "A webhook fails",
        body: "It did not answer.",
        href: "/webhooks",
      })
      const credential = (n: number) => ({ via: "cookie" as const, accountId: accountOf(n), authTime: null })
      const list = { unread: false, limit: 50 }
      const one = (n: number) =>
        Effect.flatMap(
          sql<{ id: NotificationId }>`select id from notifications where account_id = ${accountOf(n)}::uuid and shown
            and read_at is null limit 1`,
          ([row]) => inbox.markRead(accountOf(n), row!.id),
        )
      return [
        {
          name: "notifications: announce one",
          run: (n: number) => sql.withTransaction(notifications.announce(notice(n))),
          descents: 20,
        },
        {
          name: "notifications: announce one that coalesces",
          run: (n: number) => sql.withTransaction(notifications.announce({ ...notice(n), coalesceKey: "bench" })),
          descents: 20,
        },
        { name: "notifications: list and counts", run: (n: number) => inbox.list(credential(n), list), descents: 4 },
        {
          name: "notifications: list of the unread",
          run: (n: number) => inbox.list(credential(n), { ...list, unread: true }),
          descents: 4,
        },
        { name: "notifications: mark one read", run: one, descents: 16 },
        { name: "notifications: mark all read", run: (n: number) => inbox.readAll(accountOf(20 + n)), descents: 20 },
        {
          name: "notifications: live streams of 50 accounts",
          run: () =>
            changes(
              sql,
              Array.from({ length: steady }, (_, i) => ({
                accountId: accountOf(i),
                epoch: "bench",
                since: 1,
                owed: false,
              })),
              100,
            ),
          descents: 100,
        },
        { name: "notifications: prune, nothing over", run: () => retention.prune, descents: 4 },
      ]
    }).pipe(Effect.provide(context))
  })

export const notifications: Area = { name: "notifications", fill, statements }
