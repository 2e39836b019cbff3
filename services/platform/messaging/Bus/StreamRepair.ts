/**
 * Repairs the streams: makes and widens them every 30 s, at once after a new connection (the broker may be another
 * one), and when a publication finds no stream. Repairs that are asked for at once are one.
 */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Latch } from "effect"
import { request } from "./BrokerRequest.ts"
import type { BusConnection } from "./BusConnection.ts"
import { keepStreams } from "./StreamProvisioning.ts"

/** Repairs until its scope ends. */
export const streamRepair = Effect.fnUntraced(function* (connection: BusConnection) {
  let fault: string | null = "the broker has not answered yet"
  let healing: Promise<void> | null = null

  const keep = (nc: NatsConnection): Promise<void> =>
    healing ??= keepStreams(nc, connection.replicas).then(() => void (fault = null), (error) => {
      fault = error instanceof Error ? error.message : String(error)
      throw error
    }).finally(() => void (healing = null))

  const heal = request(connection, keep)

  const anew = Latch.makeUnsafe(false)
  let epoch = 0
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.onChange(() => {
        if (connection.epoch() !== epoch) anew.openUnsafe()
        epoch = connection.epoch()
      })
    ),
    (stop) => Effect.sync(stop),
  )
  yield* Effect.sync(() => anew.closeUnsafe()).pipe(
    Effect.andThen(heal),
    Effect.matchEffect({
      onSuccess: () => Effect.timeoutOption(anew.await, "30 seconds"),
      onFailure: () => Effect.sleep("1 second"),
    }),
    Effect.forever,
    Effect.forkScoped,
  )

  return {
    /** Repairs the streams now, over this connection. */
    keep,
    /** The same over the live connection. */
    heal,
    /** Why the last repair failed, or null. */
    fault: () => fault,
  }
})
