/**
 * Sends mail: over SMTP (`MailTransport.smtp`) or by another implementation that takes a whole message.
 *
 * Guarantees of an attempt over SMTP: `Sent` where the server took the message, `Refused` or `Later` only where it
 * certainly did not, and `Unknown` where it had begun to get the message and no answer followed. An address is put into
 * the envelope as it is and into headers as nodemailer encodes it; no header is built by concatenation. Reasons name
 * steps and codes and never the server's words, which may quote the message and so a link in it.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { createTransport, type Transporter } from "nodemailer"
import type { Readable } from "node:stream"
import { setImmediate } from "node:timers"
import { Failpoints } from "../Failpoints.ts"
import { parse } from "./MailAddress.ts"
import type { MessageOutcome } from "../messaging/Outgoing.ts"
import { visible } from "../Visible.ts"
import type { MailSender } from "./MailSender.ts"
import { reasonOf, type SmtpFault, verdict } from "./MailVerdict.ts"

/** One message, whole. */
export interface OutgoingMail {
  /** The mail's id. */
  readonly id: string
  /** With its angle brackets. */
  readonly messageId: string
  readonly recipient: string
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly date: Date
}

export class MailTransport extends Context.Service<MailTransport, {
  readonly from: MailSender
  /** Sends a message. Once `giveUp` returns, the attempt ends, with the outcome so far. */
  readonly deliver: (mail: OutgoingMail, giveUp: Effect.Effect<void>) => Effect.Effect<MessageOutcome>
}>()("bailiwick/services/platform/mail/MailTransport") {
  /** `url`: smtp:// (STARTTLS where the server has it) or smtps://, credentials percent-encoded in it. */
  static readonly smtp = (options: SmtpOptions) => Layer.effect(MailTransport, overSmtp(options))
}

export interface SmtpOptions {
  readonly url: Redacted.Redacted
  readonly from: MailSender
  /** Connections, and so messages that are sent at once. */
  readonly connections: number
}

/** The message as nodemailer takes it: each call gives the same bytes, except for the MIME boundary. */
export const messageOf = (from: MailSender, mail: OutgoingMail) => ({
  from,
  to: { name: "", address: mail.recipient },
  // Explicit, so that nothing in a header decides where the message goes.
  envelope: { from: from.address, to: [mail.recipient] },
  // Nodemailer folds a line break into a space; other control characters would be encoded and shown.
  subject: visible(mail.subject).replaceAll(/[\p{Cc}\s]+/gu, " "),
  text: visible(mail.text),
  html: mail.html,
  messageId: mail.messageId,
  date: mail.date,
  // RFC 3834: no vacation notices, please.
  headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
  disableFileAccess: true,
  disableUrlAccess: true,
})

const second = 1_000

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

const connect = ({ connections, url }: SmtpOptions): Transporter => {
  const { hostname, password, port, protocol, username } = new URL(Redacted.value(url))
  const secure = protocol === "smtps:"
  return createTransport({
    pool: true,
    host: hostname.replace(/^\[|\]$/g, ""),
    ...(port === "" ? {} : { port: Number(port) }),
    secure,
    ...(username === "" ? {} : {
      auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
      // Credentials cross a network under TLS only.
      requireTLS: !loopback.test(hostname),
    }),
    maxConnections: connections,
    maxMessages: 100,
    idleTimeout: 60 * second,
    connectionTimeout: 10 * second,
    greetingTimeout: 15 * second,
    dnsTimeout: 5 * second,
    socketTimeout: 60 * second,
    socketCloseTimeout: second,
    logger: false,
  })
}

const overSmtp = Effect.fnUntraced(function* (options: SmtpOptions) {
  const { from } = options
  const { hit } = yield* Failpoints
  /** Messages under way, by Message-ID: the stream is read once the server asks for the message. */
  const underWay = new Map<string, Readable>()
  const transporter = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const made = connect(options)
      made.use("stream", (mail, done) => {
        const create = mail.message.createReadStream.bind(mail.message)
        const key = String(mail.data.messageId)
        mail.message.createReadStream = (options) => {
          // Nodemailer's pool retries on another connection where the first was dead; that must not send a message
          // twice.
          const before = underWay.get(key)
          if (before?.readableDidRead === true) return before.destroy(new Error("a message leaves once"))
          const stream = create(options)
          underWay.set(key, stream)
          // The stream's last bytes are written after this event, in the same turn of the loop.
          stream.once("end", () => setImmediate(() => hit("mail.handed")))
          return stream
        }
        done()
      })
      // The pool's own errors belong to no message; each message gets its own.
      made.on("error", () => {})
      return made
    }),
    (made) => Effect.sync(() => made.close()),
  )

  const deliver = (mail: OutgoingMail, giveUp: Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (parse(mail.recipient) === null) {
        return Effect.succeed<MessageOutcome>({ _tag: "Refused", error: "no address" })
      }
      const aborting = new AbortController()
      const begun = () => underWay.get(mail.messageId)?.readableDidRead === true
      const sent = transporter.sendMail({ ...messageOf(from, mail), signal: aborting.signal }).then(
        (): MessageOutcome => ({ _tag: "Sent" }),
        (fault: SmtpFault): MessageOutcome => ({ _tag: verdict(fault, begun()), error: reasonOf(fault) }),
      )
      const ended = Effect.map(giveUp, (): MessageOutcome => {
        const outcome = { _tag: begun() ? "Unknown" as const : "Later" as const, error: "no answer in time" }
        aborting.abort()
        return outcome
      })
      // Interruptible, so that the race can leave either side even inside an uninterruptible attempt.
      return Effect.raceFirst(
        Effect.interruptible(Effect.promise(() => sent)),
        Effect.interruptible(ended),
      ).pipe(
        Effect.onInterrupt(() => Effect.sync(() => aborting.abort())),
        Effect.ensuring(Effect.sync(() => underWay.delete(mail.messageId))),
      )
    })

  return MailTransport.of({ from, deliver })
})
