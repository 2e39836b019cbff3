/** Queries to the broker itself. */
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type BrokerPlace, optionsOf } from "./BrokerAccess.ts"

/** A connection of the test's own, for one piece of work. */
export const connected = <A>(place: BrokerPlace, work: (connection: NatsConnection) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.promise(() => connect(optionsOf(place))),
    (connection) => Effect.promise(() => work(connection)),
    (connection) => Effect.promise(() => connection.close()),
  )

/** A stream manager for one query or change. */
export const manage = <A>(place: BrokerPlace, work: (manager: JetStreamManager) => Promise<A>) =>
  connected(place, async (connection) => work(await jetstreamManager(connection)))

/** How many email events the intake has not acknowledged yet. */
export const unanswered = (place: BrokerPlace) =>
  manage(place, async (manager) => {
    const { num_ack_pending, num_pending } = await manager.consumers.info("EVENTS", "mail-events")
    return num_ack_pending + num_pending
  })
