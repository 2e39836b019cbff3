/**
 * Notifications of any publisher (`intake.v1.notifications`): bounded, decoded, and either told, kept waiting for their
 * account, or set aside with the reason. An id that its account was told before is dropped, for INTAKE_MEMORY_DAYS. One
 * bad message never stops the others: what PostgreSQL refuses is halved down to the one that it refuses.
 */
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { createHash } from "node:crypto"
import { NotificationMessage, notificationSubject } from "../../schemas/bus/Notification.ts"
import { fieldsAtFault, parse } from "../platform/BoundedJson.ts"
import { Database } from "../platform/Database.ts"
import { type Reject, Rejects } from "../platform/Rejects.ts"
import { isDataFault } from "../platform/SqlFaults.ts"
import { Notifications } from "./Notifications.ts"

/** A message of the stream EVENTS. */
export interface IntakeMessage {
  readonly subject: string
  readonly seq: number
  readonly data: Uint8Array
}

/** How long a notification waits for an account that is not known yet. */
const patienceMillis = 7 * 24 * 60 * 60_000
const batch = 500

const decode = Schema.decodeUnknownResult(NotificationMessage, { errors: "all", onExcessProperty: "ignore" })

type Fault = { readonly reason: string; readonly detail: string }

/** The notification of a message, or what is wrong with it, without its values. */
export const read = (data: Uint8Array): Result.Result<NotificationMessage, Fault> =>
  Result.gen(function* () {
    const json = yield* parse(data)
    const message = yield* Result.mapError(
      decode(json),
      (error): Fault => ({ reason: "invalid_notification", detail: fieldsAtFault(error, "the message") }),
    )
    return { ...message, account_id: message.account_id.toLowerCase() }
  })

const rejectOf = ({ data, seq, subject }: IntakeMessage, { detail, reason }: Fault): Reject => ({
  ...{ stream: "EVENTS", seq, subject, reason, detail, payload: data },
})

/** What is remembered of a notification; apart from the events of the same ids. */
const keyOf = ({ account_id, id }: NotificationMessage): string => {
  const hex = createHash("sha256").update(`notification.${account_id}.${id}`).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

export class NotificationIntake extends Context.Service<NotificationIntake, {
  /** Takes messages in; when it succeeds each of them is in PostgreSQL, told or set aside. */
  readonly take: (messages: ReadonlyArray<IntakeMessage>) => Effect.Effect<void, SqlError.SqlError>
  /** Takes in what waited for accounts that are known now; gives whether there may be more. */
  readonly resume: Effect.Effect<boolean, SqlError.SqlError>
  /** Gives up on what waited for seven days. */
  readonly expire: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/notifications/NotificationIntake") {
  static readonly layer = Layer.effect(
    NotificationIntake,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const notifications = yield* Notifications
      const rejects = yield* Rejects

      interface Read {
        readonly message: IntakeMessage
        readonly said: NotificationMessage
        /** The row in which it waited for its account. */
        readonly waited?: string
      }

      const refuse = ({ message, waited }: Read, error: SqlError.SqlError) =>
        waited === undefined
          ? rejects.add([rejectOf(message, { reason: "refused", detail: error.reason._tag })])
          : sql`update intake_rejects set state = 'rejected', reason = 'refused', detail = ${error.reason._tag},
              expires_at = null where id = ${waited}::uuid`

      /** Remembers and tells what is new, in one transaction; gives the items of accounts that are not known. */
      const tell = Effect.fnUntraced(function* (items: ReadonlyArray<Read>) {
        const day = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql<{ ord: number; known: boolean; fresh: boolean }>`
          with input as materialized (
            select * from unnest(${items.map(({ said }) => said.account_id)}::uuid[],
              ${items.map(({ said }) => keyOf(said))}::uuid[]) with ordinality i(account_id, key, ord)
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
            const { account_id: accountId, body, category, href, severity, title } = of(row).said
            return { accountId, category, severity, title, body, href }
          }),
        )
        return rows.filter(({ known }) => !known).map(of)
      }, sql.withTransaction)

      const store = (items: ReadonlyArray<Read>): Effect.Effect<void, SqlError.SqlError> =>
        items.length === 0 ? Effect.void : tell(items).pipe(
          Effect.flatMap(Effect.fnUntraced(function* (unknown) {
            const until = new Date((yield* Clock.currentTimeMillis) + patienceMillis)
            const fault = { reason: "unknown_account", detail: "waits for its account" }
            yield* rejects.add(unknown.map(({ message, said }) => ({
              ...rejectOf(message, fault),
              waiting: { accountId: said.account_id, until },
            })))
          })),
          Effect.catchTag("SqlError", (error) => {
            if (!isDataFault(error)) return Effect.fail(error)
            const half = items.length >> 1
            return half === 0
              ? Effect.asVoid(refuse(items[0]!, error))
              : Effect.andThen(store(items.slice(0, half)), store(items.slice(half)))
          }),
        )

      const take = Effect.fn("NotificationIntake.take")(function* (messages: ReadonlyArray<IntakeMessage>) {
        const good: Array<Read> = []
        const bad: Array<Reject> = []
        for (const message of messages) {
          const said = read(message.data)
          if (Result.isSuccess(said)) good.push({ message, said: said.success })
          else bad.push(rejectOf(message, said.failure))
        }
        yield* rejects.add(bad)
        yield* store(good)
      })

      // Killed between the two statements, it begins again, and the ids are known as seen.
      const resume = Effect.gen(function* () {
        const rows = yield* sql<{ id: string; stream_seq: bigint; payload: Uint8Array }>`
          select r.id, r.stream_seq, r.payload from intake_rejects r
          where r.state = 'waiting' and r.subject = ${notificationSubject} and exists (
            select from accounts a where a.id = r.account_id::uuid and not a.removed)
          order by r.id limit ${batch}`
        if (rows.length === 0) return false
        yield* store(rows.flatMap(({ id, payload, stream_seq }) => {
          const message = { subject: notificationSubject, seq: Number(stream_seq), data: payload }
          const said = read(payload)
          return Result.isSuccess(said) ? [{ message, said: said.success, waited: id }] : []
        }))
        yield* sql`update intake_rejects set state = 'resolved', expires_at = null
          where id = any(${rows.map((row) => row.id)}::uuid[]) and state = 'waiting'`
        return rows.length === batch
      })

      const expire = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.asVoid(sql`
          update intake_rejects set state = 'rejected', expires_at = null
          where state = 'waiting' and subject = ${notificationSubject} and expires_at <= ${new Date(now)}`))

      return NotificationIntake.of({ take, resume, expire })
    }),
  )
}
