/**
 * The intake of notifications from any publisher (`intake.v1.notifications`), by
 * services/platform/messaging/BusIntake.ts. An id that the account had before is dropped, for INTAKE_MEMORY_DAYS.
 */
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import { createHash } from "node:crypto"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import { NotificationMessage, notificationSubject } from "../../schemas/bus/NotificationMessage.ts"
import { lowerCased } from "../../schemas/Wire.ts"
import { type AccountIntake, accountIntake, type Incoming, type IntakeFault } from "../platform/messaging/BusIntake.ts"
import { fieldsAtFault, parse } from "../platform/messaging/BoundedJson.ts"
import { Database } from "../platform/database/Database.ts"
import { Notifications } from "./Notifications.ts"

const decode = Schema.decodeUnknownResult(NotificationMessage, { errors: "all", onExcessProperty: "ignore" })

/** A publisher's notification to an account. */
type Said = Omit<NotificationMessage, "account_id"> & { readonly accountId: AccountId }

/** The notification in a message, or the fault, without the message's values. */
export const read = ({ data }: Pick<Incoming, "data">): Result.Result<Said, IntakeFault> =>
  Result.gen(function* () {
    const json = yield* parse(data)
    const { account_id, ...said } = yield* Result.mapError(
      decode(json),
      (error): IntakeFault => ({ reason: "invalid_notification", detail: fieldsAtFault(error, "the message") }),
    )
    return { ...said, accountId: lowerCased(account_id) }
  })

/** The key under which a notification is remembered; it differs from the key of an event with the same id. */
const keyOf = ({ accountId, id }: Said): string => {
  const hex = createHash("sha256").update(`notification.${accountId}.${id}`).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

export class NotificationIntake extends Context.Service<NotificationIntake, AccountIntake>()(
  "bailiwick/services/notifications/NotificationIntake",
) {
  static readonly layer = Layer.effect(
    NotificationIntake,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const notifications = yield* Notifications

      /**
       * Remembers and announces new notifications, in one transaction; returns the indexes of those with unknown
       * accounts.
       */
      const tell = Effect.fnUntraced(function* (items: ReadonlyArray<Said>) {
        const day = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql<{ ord: number; known: boolean; fresh: boolean }>`
          with input as materialized (
            select * from unnest(${items.map(({ accountId }) => accountId)}::uuid[],
              ${items.map(keyOf)}::uuid[]) with ordinality i(account_id, key, ord)
          ), fresh as (
            insert into seen_events (account_id, key, seen_on)
            select i.account_id, i.key, ${day}::timestamptz::date
            from input i join accounts a on a.id = i.account_id and not a.removed
            order by i.account_id, i.key
            on conflict do nothing returning account_id, key
          )
          select i.ord::int as ord, a.id is not null as known, f.key is not null
            and i.ord = min(i.ord) over (partition by i.account_id, i.key) as fresh
          from input i
          left join accounts a on a.id = i.account_id and not a.removed
          left join fresh f on f.account_id = i.account_id and f.key = i.key
          order by i.ord`
        const of = ({ ord }: { readonly ord: number }) => items[ord - 1]!
        yield* notifications.announce(
          ...rows.filter(({ fresh }) => fresh).map((row) => {
            const { accountId, body, category, href, severity, title } = of(row)
            return { accountId, category, severity, title, body, href }
          }),
        )
        return rows.flatMap(({ known, ord }) => known ? [] : [ord - 1])
      }, sql.withTransaction)

      return NotificationIntake.of(yield* accountIntake({ subjects: notificationSubject, read, accept: tell }))
    }),
  )
}
