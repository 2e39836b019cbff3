/**
 * Sends mails. MAIL_OUT distributes new mails over all Mailers; a scan finds retries, and mails whose message was lost.
 * Both claim rows before they send, so a mail that is announced twice is sent once.
 */
import { Deferred, Effect, Layer, Metric, Result, Schedule, Schema } from "effect"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus, type BusMessage } from "../../services/platform/messaging/Bus.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { faultPoint } from "../../services/platform/Failpoints.ts"
import { claimed } from "../../services/platform/database/Leases.ts"
import {
  type ClaimedMail,
  type MailOutcome,
  Mails,
  mailsTopic,
  MailTemplates,
} from "../../services/platform/mail/Mails.ts"
import { MailTransport } from "../../services/platform/mail/MailTransport.ts"
import { every, loop } from "./Loop.ts"

/** Mails sent concurrently; also the transport's connections. */
export const mailConnections = 5

/** The time limit of an attempt, shorter than a claim's lease. */
const attemptTime = "90 seconds"

/** The time left to an attempt when the process stops. */
const stopTime = "4 seconds"

const renderTime = "20 seconds"

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Union([
  Schema.Struct({ mail_id: Schema.String }),
  Schema.Struct({ mail_ids: Schema.Array(Schema.String) }),
])))

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** What is no mail's id is no mail: the rows are the truth. */
const idsOf = (messages: ReadonlyArray<BusMessage>) =>
  messages.flatMap((message) => {
    const decoded = decode(message.text)
    if (Result.isFailure(decoded)) return []
    const named = "mail_id" in decoded.success ? [decoded.success.mail_id] : decoded.success.mail_ids
    return named.filter((id) => uuid.test(id))
  })

const attempts = Metric.counter("bailiwick_mail_attempts_total", { description: "Attempts to send a mail by outcome" })

const run = Effect.gen(function* () {
  const { mailer } = yield* Mails
  const templates = new Map((yield* MailTemplates).map((template) => [template.kind, template]))
  const transport = yield* MailTransport
  const bus = yield* Bus
  const bells = yield* WakeUps
  const clocks = yield* ClockHealth
  const stopping = yield* Deferred.make<void>()
  const kinds = [...templates.keys()]
  const domain = transport.from.address.slice(transport.from.address.lastIndexOf("@") + 1)

  const giveUp = Effect.raceFirst(
    Effect.sleep(attemptTime),
    Effect.andThen(Deferred.await(stopping), Effect.sleep(stopTime)),
  )

  const render = (mail: ClaimedMail) =>
    templates.get(mail.kind)!.render({
      id: mail.id,
      subjectId: mail.subject_id,
      recipient: mail.recipient,
      args: mail.args,
    }).pipe(
      Effect.timeout(renderTime),
      Effect.map(Result.succeed),
      // The cause is not logged: it may contain the mail's text.
      Effect.catchCause(() => Effect.succeed(Result.fail("its template failed"))),
    )

  const send = Effect.fnUntraced(function* (
    mail: ClaimedMail,
    rendered: Effect.Success<ReturnType<typeof render>>,
  ): Effect.fn.Return<MailOutcome | null, unknown> {
    if (Result.isFailure(rendered)) return { _tag: "Later", error: rendered.failure }
    if (rendered.success === null) return { _tag: "Dropped" }
    const messageId = yield* mailer.startSending(mail, `<${mail.id}@${domain}>`)
    if (messageId === null) return null
    yield* faultPoint("mail.marked")
    const { html, subject, text } = rendered.success
    const { created_at: date, id, recipient } = mail
    return yield* transport.deliver({ id, messageId, recipient, subject, text, html, date }, giveUp)
  })

  /**
   * Uninterruptible once the message may have left, so that the outcome is recorded; `giveUp` bounds it when the
   * process stops.
   */
  const attempt = (mail: ClaimedMail) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const outcome = yield* send(mail, yield* restore(render(mail)))
        if (outcome === null) return
        yield* faultPoint("mail.answered")
        yield* Metric.update(Metric.withAttributes(attempts, { outcome: outcome._tag.toLowerCase() }), 1)
        if ("error" in outcome) {
          yield* Effect.logWarning(`mail ${mail.id} (${mail.kind}): ${outcome._tag.toLowerCase()}, ${outcome.error}`)
        }
        yield* mailer.settle(mail, outcome).pipe(Effect.retry({ times: 5, schedule: Schedule.spaced("200 millis") }))
        yield* faultPoint("mail.settled")
      })
    ).pipe(
      // The lease ends by itself, and the sending mark tells the next attempt that the mail may have been sent.
      Effect.catchCause(() => Effect.logWarning(`mail ${mail.id} (${mail.kind}): its attempt was not settled`)),
    )

  const sendAll = Effect.fnUntraced(function* (mails: ReadonlyArray<ClaimedMail>) {
    if (mails.length > 0) yield* faultPoint("mail.claimed")
    yield* Effect.forEach(mails, attempt, { concurrency: mailConnections, discard: true })
  })

  const scan = Effect.gen(function* () {
    if (!(yield* clocks.read).healthy) return false
    return yield* claimed({
      claim: mailer.claim({ kinds, limit: mailConnections }),
      work: (mails) => Effect.as(sendAll(mails), mails.length === mailConnections),
      giveBack: mailer.giveBack,
    })
  })

  yield* bus.consume({
    stream: "MAIL_OUT",
    durable: "mailer",
    ackWaitMillis: 120_000,
    maxAckPending: 200,
    batch: mailConnections,
    handler: (messages) => {
      const ids = idsOf(messages)
      const some = claimed({
        claim: mailer.claim({ kinds, ids, limit: mailConnections }),
        work: Effect.fnUntraced(function* (mails) {
          // From here on the rows' leases, or the scan, answer for them.
          for (const message of messages) message.ack()
          yield* sendAll(mails)
          return mails.length === mailConnections
        }),
        giveBack: mailer.giveBack,
      })
      return Effect.asVoid(Effect.repeat(some, { while: (more) => more }))
    },
  })
  yield* loop("due mails", yield* bells.bell(mailsTopic), 1_000, scan)
  yield* every("mails' leases", 5_000, mailer.free)
  yield* every("ended mails", 3_600_000, mailer.prune)
  // Finalizers run in reverse order: this one must run first, and so is added last.
  yield* Effect.addFinalizer(() => Deferred.succeed(stopping, undefined))
})

export const Mailer = { layer: Layer.effectDiscard(run) } as const
