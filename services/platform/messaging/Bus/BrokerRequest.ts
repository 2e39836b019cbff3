/** Requests to the broker: over the live connection, which each waits for, and with failures as `BusError`. */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { BusConnection } from "./BusConnection.ts"
import { BusError } from "./BusError.ts"

/** How long a request waits for a connection, and a publication for its ack, in milliseconds. */
export const deadlineMillis = 5_000

export const unavailable = (cause: unknown): BusError =>
  new BusError({ reason: "unavailable", detail: cause instanceof Error ? cause.message : String(cause) })

/** Makes an effect of a call to the broker; any failure is `unavailable`. */
export const asked = <A>(ask: () => Promise<A>): Effect.Effect<A, BusError> =>
  Effect.tryPromise({ try: ask, catch: unavailable })

/** The live connection; fails where there is none within 5 s. */
export const awaited = ({ get }: BusConnection): Effect.Effect<NatsConnection, BusError> =>
  Effect.timeoutOrElse(get, { duration: deadlineMillis, orElse: () => Effect.fail(unavailable("no connection")) })

/** Asks the broker once there is a connection. */
export const request = <A>(
  connection: BusConnection,
  ask: (nc: NatsConnection) => Promise<A>,
): Effect.Effect<A, BusError> => Effect.flatMap(awaited(connection), (nc) => asked(() => ask(nc)))
