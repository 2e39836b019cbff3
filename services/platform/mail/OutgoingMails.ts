/**
 * The channel `mail`: a mail is rendered by the template of its kind, marked as being sent, and handed to the transport.
 * After the mark only an answer tells what became of the message; its repeat has the same Message-ID.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Metric } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../database/Database.ts"
import { faultPoint } from "../Failpoints.ts"
import {
  type ClaimedMessage,
  type MessageOutcome,
  type MessageRows,
  type Outgoing,
  outgoing,
} from "../messaging/Outgoing.ts"
import { shownWith } from "../observability/ShownMetrics.ts"
import { MailTemplates, type RenderedMail } from "./Mails.ts"
import { MailTransport } from "./MailTransport.ts"

const minute = 60_000

/** Mails sent concurrently; also the transport's connections. */
export const mailConnections = 5

const leaseMillis = 3 * minute
const renderTime = "20 seconds"

interface ClaimedMail extends ClaimedMessage {
  readonly kind: string
  readonly subject_id: string
  readonly recipient: string
  readonly args: Readonly<Record<string, string | null>>
  readonly created_at: Date
}

const attempts = Metric.counter("bailiwick_mail_attempts_total", { description: "Attempts to send a mail by outcome" })

const outcomes = ["sent", "dropped", "later", "refused", "unknown"] satisfies Array<Lowercase<MessageOutcome["_tag"]>>

const noted = Effect.fnUntraced(function* ({ id, kind }: ClaimedMail, outcome: MessageOutcome) {
  yield* Metric.update(Metric.withAttributes(attempts, { outcome: outcome._tag.toLowerCase() }), 1)
  if (!("error" in outcome)) return
  yield* Effect.logWarning(`mail ${id} (${kind}): ${outcome._tag.toLowerCase()}, ${outcome.error}`)
})

const rowsOf = (sql: PgClient.PgClient, kinds: ReadonlyArray<string>): MessageRows => ({
  table: "mails",
  due: sql`and t.kind = any(${[...kinds]}::text[])`,
  unsent: sql`and not t.sending`,
  never: sql`null`,
  more: (outcome, now) =>
    sql`, sending = false, doubts = doubts + ${outcome === "Unknown" ? 1 : 0},
      sent_at = ${outcome === "Sent" ? now : null}`,
})

/**
 * Marks the mail as being sent, with `messageId` unless it has one from an earlier attempt; gives the Message-ID to use,
 * or null where the claim is lost and nothing may be sent.
 */
const startSending = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  mail: ClaimedMail,
  messageId: string,
): Effect.fn.Return<string | null, SqlError.SqlError> {
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{ message_id: string }>`
    update mails set sending = true, message_id = coalesce(message_id, ${messageId}),
      lease_until = ${new Date(now + leaseMillis)}
    where id = ${mail.id}::uuid and claim = ${mail.claim} and lease_until > ${new Date(now)}
    returning message_id`
  return row?.message_id ?? null
})

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* shownWith(attempts, "outcome", outcomes)
  const transport = yield* MailTransport
  const templates = new Map((yield* MailTemplates).map((template) => [template.kind, template]))
  const domain = transport.from.address.slice(transport.from.address.lastIndexOf("@") + 1)

  const send = Effect.fnUntraced(function* (
    mail: ClaimedMail,
    { html, subject, text }: RenderedMail,
    giveUp: Effect.Effect<void>,
  ): Effect.fn.Return<MessageOutcome | null, SqlError.SqlError> {
    const { created_at: date, id, recipient } = mail
    const messageId = yield* startSending(sql, mail, `<${id}@${domain}>`)
    if (messageId === null) return null
    yield* faultPoint("mail.marked")
    return yield* transport.deliver({ id, messageId, recipient, subject, text, html, date }, giveUp)
  })

  const prepare = (mail: ClaimedMail) =>
    templates.get(mail.kind)!.render({
      id: mail.id,
      subjectId: mail.subject_id,
      recipient: mail.recipient,
      args: mail.args,
    }).pipe(
      Effect.timeout(renderTime),
      Effect.map((rendered) => (giveUp: Effect.Effect<void>) =>
        rendered === null ? Effect.succeed<MessageOutcome>({ _tag: "Dropped" }) : send(mail, rendered, giveUp)
      ),
      // The cause is not logged: it may contain the mail's text.
      Effect.catchCause(() =>
        Effect.succeed(() => Effect.succeed<MessageOutcome>({ _tag: "Later", error: "its template failed" }))
      ),
    )

  return yield* outgoing<ClaimedMail>(sql, {
    name: "mail",
    rows: rowsOf(sql, [...templates.keys()]),
    batch: mailConnections,
    leaseMillis,
    attemptMillis: 90_000,
    // Eight attempts in 23 hours.
    retryMillis: [1, 5, 15, 60, 180, 360, 720].map((minutes) => minutes * minute),
    keptMillis: 90 * 86_400_000,
    prepare,
    noted,
  })
})

/** Sends the mails whose templates this process knows; mails of other kinds are left to other processes. */
export class OutgoingMails extends Context.Service<OutgoingMails, Outgoing>()(
  "bailiwick/services/platform/mail/OutgoingMails",
) {
  static readonly layer = Layer.effect(OutgoingMails, make)
}
