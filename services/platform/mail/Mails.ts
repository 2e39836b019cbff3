/**
 * Outgoing mail (docs/api/mail.md). A mail is a row, added in the transaction that decides to send it, and an outbox
 * message that names the row; the template of its kind makes the text when it is sent.
 *
 * A mail is claimed, marked as being sent, sent, settled. Where the claim ended before the mark, nothing was sent, and
 * the mail is due again. After the mark only an answer tells what became of the message: without an answer (cut off, or
 * the process died) the mail is `unknown` and is repeated once, ten minutes later, under the same Message-ID. So a
 * server gets a mail at most twice, and twice only in that case.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { WakeUps } from "../messaging/WakeUps.ts"
import { Database } from "../database/Database.ts"
import { afterCommit, insertion, write } from "../database/UnitOfWork.ts"
import { Ids } from "../Ids.ts"
import type { MailOutcome } from "./Mails/Claims.ts"
import { claim, free, giveBack, settle, startSending } from "./Mails/Claims.ts"
import type { ClaimedMail } from "./Mails/Claims.ts"
import { type Naming, Outbox } from "../messaging/Outbox.ts"

export type { ClaimedMail, MailOutcome } from "./Mails/Claims.ts"

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

const keptMillis = 90 * 86_400_000
/** Rows that one statement deletes. */
const batch = 1_000

export const mailsTopic = "mails"

const announcement: Naming = {
  ...{ stream: "MAIL_OUT", subject: "mailer.v1.send" },
  text: (ids) => JSON.stringify(ids.length === 1 ? { mail_id: ids[0] } : { mail_ids: ids }),
}

export class Mails extends Context.Service<Mails, {
  /** Adds mails in the current transaction (UnitOfWork.ts); returns their ids in order. */
  readonly add: (...mails: ReadonlyArray<NewMail>) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
  readonly diagnostics: Effect.Effect<MailDiagnostics, SqlError.SqlError>
  /** For the worker Mailer only. */
  readonly mailer: {
    /** Claims at most `limit` due mails of these kinds, of `ids` where they are given, for the time of one attempt. */
    readonly claim: (options: {
      readonly kinds: ReadonlyArray<string>
      readonly limit: number
      readonly ids?: ReadonlyArray<string>
    }) => Effect.Effect<ReadonlyArray<ClaimedMail>, SqlError.SqlError>
    /** Releases mails that were claimed together and of which nothing was sent. */
    readonly giveBack: (mails: ReadonlyArray<ClaimedMail>) => Effect.Effect<void, SqlError.SqlError>
    /**
     * Marks the mail as being sent, with `messageId` unless it has one from an earlier attempt; returns the Message-ID
     * to use, or null where the claim is lost and nothing may be sent.
     */
    readonly startSending: (mail: ClaimedMail, messageId: string) => Effect.Effect<string | null, SqlError.SqlError>
    readonly settle: (mail: ClaimedMail, outcome: MailOutcome) => Effect.Effect<void, SqlError.SqlError>
    /** Frees claims whose lease ended. */
    readonly free: Effect.Effect<void, SqlError.SqlError>
    /** Deletes mails that ended 90 days ago. */
    readonly prune: Effect.Effect<void, SqlError.SqlError>
  }
}>()("bailiwick/services/platform/mail/Mails") {
  static readonly layer = Layer.effect(
    Mails,
    Effect.gen(function* () {
      const { sql, wide } = yield* Database
      const bells = yield* WakeUps
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
        yield* afterCommit(sql, bells.ring(mailsTopic))
        return ids
      })

      const diagnostics = Effect.map(
        wide<MailDiagnostics>`
          select (select count(*)::int from mails where claim is null and not_before is not null) as waiting,
            (select count(*)::int from mails where state = 'failed') as failed,
            (select count(*)::int from mails where state = 'unknown') as unknown`,
        ([row]) => row!,
      )

      return Mails.of({
        add,
        diagnostics,
        mailer: {
          claim: (options) => claim(sql, options),
          giveBack: (mails) => giveBack(sql, mails),
          startSending: (mail, messageId) => startSending(sql, mail, messageId),
          settle: (mail, outcome) => settle(sql, mail, outcome),
          free: free(sql),
          prune: Effect.gen(function* () {
            const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
            const pruned = sql`delete from mails where id in (
              select id from mails where ended_at < ${before} limit ${batch} for update skip locked) returning 1`
            yield* Effect.repeat(pruned, { until: (rows) => rows.length < batch })
          }),
        },
      })
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
  "bailiwick/services/platform/MailTemplates",
  { defaultValue: () => [] },
) {}
