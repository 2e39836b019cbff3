/**
 * Notices to accounts. In the transaction of the change that it announces, a notice becomes a stored notification
 * (channel `web`), a mail and a Slack message, each where the account's preferences have that channel on, and a message
 * of the stream NOTIFICATIONS, which holds no body and no address.
 *
 * Every change of an account's notifications locks its inbox's row and raises the version, so positions are in commit
 * order and the counts are exact. Inboxes are almost last in the order of locks (before lifecycle heads only): announce
 * last, once in a transaction, with the notices of all accounts.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type AccountId, NotificationId } from "../../schemas/BrandedIds.ts"
import type { Notice } from "./Notice.ts"
import { Subject } from "../../schemas/bus/Subject.ts"
import type { NotificationAnnounced } from "../../schemas/bus/NotificationMessage.ts"
import type { Channel } from "../../schemas/mail/Notification.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { afterCommit, write } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { Mails } from "../platform/mail/Mails.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { type Entry, merged, newEntries, raise, type Reachable, reachable, store } from "./NoticeStore.ts"
import { notificationMail } from "./NotificationMail.ts"
import { chosen } from "./Preferences.ts"
import { slackMessages } from "./SlackMessages.ts"

export { type Reachable, reachColumns } from "./NoticeStore.ts"

/** How accounts are reached, by id; unknown accounts are not in the map. */
export type Reach = ReadonlyMap<AccountId, Reachable>

/** The channels of a notice other than the inbox. */
interface Ways {
  readonly email: string | null
  readonly slack: boolean
}

/** The topic of the wake-up signal that changed inboxes send. */
export const inboxesTopic = "inboxes"

export class Notifications extends Context.Service<Notifications, {
  /** Adds notices, in a transaction only. Fails only with the database. */
  readonly announce: (...notices: ReadonlyArray<Notice>) => Effect.Effect<void, SqlError.SqlError>
  /** How accounts are reached, for callers that need their addresses as well. */
  readonly reach: (accountIds: ReadonlyArray<AccountId>) => Effect.Effect<Reach, SqlError.SqlError>
  /** `announce` for a caller that has called `reach` for the notices' accounts in the same transaction. */
  readonly tell: (reach: Reach, notices: ReadonlyArray<Notice>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/notifications/Notifications") {
  static readonly layer = Layer.effect(
    Notifications,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const wakeUps = yield* WakeUps
      const mails = yield* Mails
      const outbox = yield* Outbox

      const entries = newEntries(sql)
      const addSlack = slackMessages(sql, wakeUps)

      /** Stores entries; returns those that are new, which alone go out by the other channels. */
      const keep = Effect.fnUntraced(function* (list: ReadonlyArray<Entry & Ways>, now: Date) {
        const shown = list.filter(({ web }) => web)
        if (shown.length > 0) yield* afterCommit(sql, wakeUps.notify(inboxesTopic))
        if (list.every(({ key }) => key === null)) {
          const at = now.toISOString()
          yield* write(sql, entries, list.map((entry) => ({ ...entry, now: at })))
          return list
        }
        const versions = yield* raise(sql, shown.map(({ notice }) => notice.accountId))
        const fresh = yield* store(sql, list, versions, now)
        return list.filter(({ id }) => fresh.has(id))
      })

      const reach = (accountIds: ReadonlyArray<AccountId>) =>
        accountIds.length === 0 ? Effect.succeed<Reach>(new Map()) : reachable(sql, accountIds)

      const tell = Effect.fn("Notifications.tell")(function* (reach: Reach, notices: ReadonlyArray<Notice>) {
        if (notices.length === 0) return
        const now = yield* Clock.currentTimeMillis
        const said = merged(notices, now)
        const ids = yield* (yield* Ids).batch(said.length)
        const reaching = said.flatMap(({ count, key, notice }, i) => {
          const known = reach.get(notice.accountId)
          const account = known?.active === true ? known : undefined
          const on = (channel: Channel) =>
            chosen(account?.choices, notice.category, channel) && notice.without?.includes(channel) !== true
          const entry = {
            id: NotificationId.make(ids[i]!),
            notice,
            key,
            count,
            web: on("web"),
            email: account !== undefined && on("email") ? account.email : null,
            slack: account?.slack === true && on("slack"),
          }
          return entry.web || entry.email !== null || entry.slack ? [entry] : []
        })
        const anew = yield* keep(reaching, new Date(now))
        const created_at = new Date(now).toISOString()
        yield* outbox.add(...anew.map(({ id, notice }) => ({
          stream: "NOTIFICATIONS" as const,
          subject: `notifications.v1.${Subject.token(notice.accountId)}.${notice.category}`,
          payload: JSON.stringify(
            {
              id,
              account_id: notice.accountId,
              category: notice.category,
              severity: notice.severity,
              title: notice.title,
              href: notice.href,
              created_at,
            } satisfies NotificationAnnounced,
          ),
        })))
        yield* mails.add(
          ...anew.flatMap(({ email, id, notice }) => email === null ? [] : [notificationMail(id, email, notice)]),
        )
        const slack = anew.filter((entry) => entry.slack)
        if (slack.length > 0) yield* addSlack(slack, new Date(now))
      })

      const announce = Effect.fn("Notifications.announce")(function* (...notices: ReadonlyArray<Notice>) {
        yield* tell(yield* reach([...new Set(notices.map(({ accountId }) => accountId))]), notices)
      })

      return Notifications.of({ announce, reach, tell })
    }),
  )
}
