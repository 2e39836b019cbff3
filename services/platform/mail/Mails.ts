/**
 * Mails (docs/api/mail.md). A mail is a row, added in the transaction that decides to send it, and an outbox message that
 * names the row; the template of its kind makes the text when it is sent (OutgoingMails.ts).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { MailAnnouncement } from "../../../schemas/bus/MailAnnouncement.ts"
import { WakeUps } from "../messaging/WakeUps.ts"
import { Database } from "../database/Database.ts"
import { unfinished } from "../database/Leases.ts"
import { afterCommit, insertion, write } from "../database/UnitOfWork.ts"
import { Ids } from "../Ids.ts"
import { type Naming, Outbox } from "../messaging/Outbox.ts"

/**
 * A mail to send. `args` are stored unsealed: no secret, token or link, and no text that a database dump must not show.
 */
export interface NewMail {
  /** The kind of the mail's template. */
  readonly kind: string
  /** The row that the mail is about, which its template reads again. */
  readonly subjectId: string
  /** One address. */
  readonly recipient: string
  readonly args: Readonly<Record<string, string | null>>
}

/** Counts of mails, for `cli doctor` and diagnostics. */
export interface MailDiagnostics {
  readonly waiting: number
  readonly failed: number
  /** Mails whose last attempt ended without an answer. */
  readonly unknown: number
}

/** Removes what PostgreSQL's text and jsonb cannot hold: names come from outside. */
const storable = (text: string) => text.replaceAll("\0", "").toWellFormed()

export const mailsTopic = "mails"

const announcement: Naming = {
  stream: "MAIL_OUT",
  subject: "mailer.v1.send",
  text: (ids) =>
    JSON.stringify((ids.length === 1 ? { mail_id: ids[0]! } : { mail_ids: ids }) satisfies MailAnnouncement),
}

/** SQL of one row for each waiting mail, as `unfinished` makes it. */
export const unsent = (sql: PgClient.PgClient, most: number) =>
  unfinished(sql, { table: "mails", key: "id", keyType: "uuid" }, sql`t.not_before is not null`, most)

export class Mails extends Context.Service<Mails, {
  /** Adds mails in the current transaction (UnitOfWork.ts); returns their ids in order. */
  readonly add: (...mails: ReadonlyArray<NewMail>) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
  readonly diagnostics: Effect.Effect<MailDiagnostics, SqlError.SqlError>
}>()("bailiwick/services/platform/mail/Mails") {
  static readonly layer = Layer.effect(
    Mails,
    Effect.gen(function* () {
      const { sql, wide } = yield* Database
      const wakeUps = yield* WakeUps
      const outbox = yield* Outbox

      const mailRows = insertion(sql, "mails", {
        id: "uuid",
        kind: "text",
        subject_id: "text",
        recipient: "text",
        args: "jsonb",
        created_at: "timestamptz",
        not_before: "timestamptz",
      })

      const add = Effect.fn("Mails.add")(function* (...mails: ReadonlyArray<NewMail>) {
        const ids = yield* (yield* Ids).batch(mails.length)
        if (mails.length === 0) return ids
        const now = new Date(yield* Clock.currentTimeMillis).toISOString()
        const rows = mails.map(({ args, kind, recipient, subjectId }, i) => ({
          id: ids[i]!,
          created_at: now,
          not_before: now,
          kind,
          subject_id: storable(subjectId),
          recipient: storable(recipient),
          args: Object.fromEntries(
            Object.entries(args).map(([k, value]) => [k, value === null ? null : storable(value)]),
          ),
        }))
        yield* write(sql, mailRows, rows)
        yield* outbox.name(announcement, ids)
        yield* afterCommit(sql, wakeUps.notify(mailsTopic))
        return ids
      })

      const diagnostics = Effect.map(
        wide<MailDiagnostics>`
          select (select count(*)::int from mails where claim is null and not_before is not null) as waiting,
            (select count(*)::int from mails where state = 'failed') as failed,
            (select count(*)::int from mails where state = 'unknown') as unknown`,
        ([row]) => row!,
      )

      return Mails.of({ add, diagnostics })
    }),
  )
}

/** The text of one mail. */
export interface RenderedMail {
  /** One line. */
  readonly subject: string
  readonly text: string
  /** A whole document, made by the tag of Html.ts. */
  readonly html: string
}

export interface MailTemplate {
  readonly kind: string
  /** Makes the text. Null: there is nothing to send any more, and the mail is dropped. A failure is tried again. */
  readonly render: (mail: {
    readonly id: string
    readonly subjectId: string
    readonly recipient: string
    readonly args: Readonly<Record<string, string | null>>
  }) => Effect.Effect<RenderedMail | null, SqlError.SqlError>
}

/** The templates that this process knows; mails of other kinds are left to other processes. */
export class MailTemplates extends Context.Reference<ReadonlyArray<MailTemplate>>(
  "bailiwick/services/platform/mail/Mails/MailTemplates",
  { defaultValue: () => [] },
) {}
