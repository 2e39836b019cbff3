/** Fixture of notification tests: every service of the domain, over this file's database and broker account. */
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Inbox, type ListRequest } from "../../../services/notifications/Inbox.ts"
import { Notifications } from "../../../services/notifications/Notifications.ts"
import type { Notice } from "../../../services/notifications/Notice.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { RejectedMessages } from "../../../services/platform/messaging/RejectedMessages.ts"
import type { NotificationList } from "../../../schemas/mail/Notification.ts"
import { ground } from "../../support/TestAccounts.ts"

export const fixture = Layer.mergeAll(Inbox.layer, Preferences.layer).pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provideMerge(Layer.mergeAll(KeyUses.layer, RejectedMessages.layer)),
  Layer.provide(Cookies.layer([])),
  Layer.provideMerge(ground),
)

/** Makes an active account through the directory. */
export const newAccount = Effect.fnUntraced(function* (fields: object = {}) {
  const id = AccountId.make(randomUUID())
  const account = { kind: "account", id, version: 1, email: `${id}@example.com`, name: "Test", plan: "free" }
  yield* (yield* Directory).apply([
    JSON.stringify({ ...account, platform_admin: false, status: "active", ...fields }),
  ])
  return id
})

export const notice = (accountId: AccountId, fields: Partial<Notice> = {}): Notice => ({
  accountId,
  category: "team",
  severity: "info",
  title: "Something happened",
  body: "And this is what.",
  href: "/somewhere",
  ...fields,
})

/** Announces in a transaction of its own. */
export const announce = Effect.fnUntraced(function* (...notices: ReadonlyArray<Notice>) {
  const { sql } = yield* Database
  yield* sql.withTransaction((yield* Notifications).announce(...notices))
})

export const session = (accountId: AccountId) => ({ via: "cookie", accountId, authTime: null }) as const

export const list = Effect.fnUntraced(
  function* (accountId: AccountId, request: Partial<ListRequest> = {}) {
    const body = yield* (yield* Inbox).list(session(accountId), { unread: false, ...request })
    return JSON.parse(body) as NotificationList
  },
)

/** Total and unread as the rows give them, to compare with the inbox's counts. */
export const counted = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ total: number; unread: number }>`
    select count(*)::int as total, (count(*) filter (where read_at is null))::int as unread
    from notifications where account_id = ${accountId}::uuid and shown`
  return row!
})
