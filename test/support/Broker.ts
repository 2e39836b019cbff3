/** Queries to the broker itself. */
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"

/** A connection of the test's own, for one piece of work. */
export const connected = <A>(url: Redacted.Redacted, work: (connection: NatsConnection) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.promise(() => {
      const { host, password, username } = new URL(Redacted.value(url))
      return connect({ servers: host, ...(password === "" ? { token: username } : { user: username, pass: password }) })
    }),
    (connection) => Effect.promise(() => work(connection)),
    (connection) => Effect.promise(() => connection.close()),
  )

/** A stream manager for one query or change. */
export const manage = <A>(url: Redacted.Redacted, work: (manager: JetStreamManager) => Promise<A>) =>
  connected(url, async (connection) => work(await jetstreamManager(connection)))

/** How many email events the intake has not acknowledged yet. */
export const unanswered = (url: Redacted.Redacted) =>
  manage(url, async (manager) => {
    const { num_ack_pending, num_pending } = await manager.consumers.info("EVENTS", "mail-events")
    return num_ack_pending + num_pending
  })
