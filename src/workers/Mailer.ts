/**
 * Sends mails. MAIL_OUT distributes new mails over all Mailers; a scan finds retries, and mails whose message was lost.
 * Both claim rows before they send, so a mail that is announced twice is sent once.
 */
import { Effect, Layer, Result, Schema } from "effect"
import { MailAnnouncement } from "../../schemas/bus/MailAnnouncement.ts"
import { mailsTopic } from "../../services/platform/mail/Mails.ts"
import { mailConnections, OutgoingMails } from "../../services/platform/mail/OutgoingMails.ts"
import { Bus, type BusMessage } from "../../services/platform/messaging/Bus.ts"
import { sending } from "./OutgoingLoops.ts"

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(MailAnnouncement))

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The mail ids in messages; a text that is no UUID is left out. */
const idsOf = (messages: ReadonlyArray<BusMessage>) =>
  messages.flatMap((message) => {
    const decoded = decode(message.text)
    if (Result.isFailure(decoded)) return []
    const named = "mail_id" in decoded.success ? [decoded.success.mail_id] : decoded.success.mail_ids
    return named.filter((id) => uuid.test(id))
  })

const run = Effect.gen(function* () {
  const bus = yield* Bus
  const mails = yield* OutgoingMails
  yield* bus.consume({
    stream: "MAIL_OUT",
    durable: "mailer",
    ackWaitMillis: 120_000,
    maxAckPending: 200,
    batch: mailConnections,
    handler: (messages) => {
      // From the claim on the rows' leases, or the scan, answer for them.
      const onClaimed = Effect.sync(() => {
        for (const message of messages) message.ack()
      })
      const some = mails.work({ ids: idsOf(messages), onClaimed })
      return Effect.asVoid(Effect.repeat(some, { while: (more) => more }))
    },
  })
  yield* sending(mails, { names: ["due mails", "mails' leases", "ended mails"], topic: mailsTopic, batches: 1 })
})

export const Mailer = { layer: Layer.provide(Layer.effectDiscard(run), OutgoingMails.layer) } as const
