/** The mail platform: publishes email events and directory lines on the bus, each acknowledged. */
import { jetstream, type JetStreamClient } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect, type Scope } from "effect"
import { type BrokerPlace, optionsOf } from "../../support/BrokerAccess.ts"

export interface MailEvent {
  readonly id: string
  readonly event: string
  readonly account_id: string
  readonly email_id: string
  readonly recipient: string
  readonly timestamp: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** The members of each event type beside `subject` and `tag` (specification, Events). */
const extras: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "email.sent": { domain: "example.com" },
  "email.delivered": { domain: "example.com", smtp_response: "250 2.0.0 OK: queued as 4fX" },
  "email.opened": { user_agent: "Mozilla/5.0 (X11; Linux)", ip: "198.51.100.7" },
  "email.clicked": { url: "https://example.com/?a=1&b=<2>", user_agent: "curl/8", ip: "2001:db8::7" },
  "email.bounced": { dsn: "5.1.1", response: "550 5.1.1 no such user “müller”", bounce_type: "hard" },
  "email.failed": { error: "no route to host" },
  "email.complained": { feedback_type: "abuse" },
  "email.unsubscribed": { method: "one-click" },
}

export const eventTypes = Object.keys(extras)

/** A complete event; `id` is unique for its account. */
export const mailEvent = (accountId: string, id: string, event = "email.delivered"): MailEvent => ({
  id,
  event,
  account_id: accountId,
  email_id: `em_${id}`,
  recipient: `${id}@example.com`,
  timestamp: "2026-01-31T12:34:56.789Z",
  metadata: { subject: `Nr. ${id} – „Grüße“ 🎉`, tag: id.endsWith("7") ? null : "newsletter", ...extras[event] },
})

export const subjectOf = (event: string) => `intake.v1.mail-events.${event.replace("email.", "")}`

export interface EventFeed {
  /** Publishes one message; fails the test where the broker does not acknowledge. */
  readonly publish: (subject: string, data: string, msgId?: string) => Effect.Effect<void>
  /** Publishes many events at once, with message ids; returns those acknowledged within 30 s, or the time given. */
  readonly events: (
    events: ReadonlyArray<MailEvent>,
    patienceMillis?: number,
  ) => Effect.Effect<ReadonlyArray<MailEvent>>
}

const connection = (place: BrokerPlace, inboxPrefix?: string): Effect.Effect<NatsConnection, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() =>
      connect({
        ...optionsOf(place),
        ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        reconnectJitter: 10,
        // A server that is frozen answers no ping: another one of its cluster takes its place.
        pingInterval: 2_000,
        maxPingOut: 2,
      })
    ),
    (nc) => Effect.promise(() => nc.close().catch(() => {})),
  )

const outcome = async (js: JetStreamClient, event: MailEvent, timeout: number) => {
  const msgID = `${event.account_id}.${event.id}`
  const acked = await js.publish(subjectOf(event.event), JSON.stringify(event), { msgID, timeout }).then(
    () => true,
    () => false,
  )
  return acked ? [event] : []
}

/** `inboxPrefix`: where the user may read answers, if not everywhere. */
export const feed = Effect.fnUntraced(function* (
  place: BrokerPlace,
  inboxPrefix?: string,
): Effect.fn.Return<EventFeed, never, Scope.Scope> {
  const js = jetstream(yield* connection(place, inboxPrefix))
  return {
    publish: (subject, data, msgId) =>
      Effect.promise(() =>
        js.publish(subject, data, { timeout: 30_000, ...(msgId === undefined ? {} : { msgID: msgId }) })
      ),
    events: (events, patience = 30_000) =>
      Effect.promise(async () => (await Promise.all(events.map((e) => outcome(js, e, patience)))).flat()),
  }
})
