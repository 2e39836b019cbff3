/** Publishes several messages at once; where no stream takes a subject, the streams are repaired once. */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Result } from "effect"
import { awaited, deadlineMillis, unavailable } from "./BrokerRequest.ts"
import type { BusConnection } from "./BusConnection.ts"
import type { BusError } from "./BusError.ts"
import { type BusOutcome, type BusPublication, publishOn } from "./Publisher.ts"

/** `keep` repairs the streams. */
export const publishingAll = (connection: BusConnection, keep: (nc: NatsConnection) => Promise<void>) => {
  const sendAll = async (nc: NatsConnection, messages: ReadonlyArray<BusPublication>, until: number) => {
    const left = () => Math.max(1, Math.ceil(until - performance.now()))
    const outcomes = await Promise.all(messages.map((message) => publishOn(nc, message, left())))
    const lost = outcomes.flatMap((o, i) => Result.isFailure(o) && o.failure.reason === "no-stream" ? [i] : [])
    if (lost.length === 0) return outcomes
    if (!await keep(nc).then(() => true, () => false)) return outcomes
    const again = await Promise.all(lost.map((i) => publishOn(nc, messages[i]!, left())))
    lost.forEach((i, n) => outcomes[i] = again[n]!)
    return outcomes
  }

  /** `publishAll` of the bus: waits for every ack, 5 s at most, connection and repair included. */
  return (messages: ReadonlyArray<BusPublication>, epoch?: number): Effect.Effect<ReadonlyArray<BusOutcome>> =>
    Effect.suspend(() => {
      if (messages.length === 0) return Effect.succeed([])
      const none = (error: BusError) => messages.map(() => Result.fail(error))
      const until = performance.now() + deadlineMillis
      return Effect.matchEffect(awaited(connection), {
        onFailure: (error) => Effect.succeed(none(error)),
        onSuccess: (nc) =>
          epoch === undefined || epoch === connection.epoch()
            ? Effect.promise(() => sendAll(nc, messages, until))
            : Effect.succeed(none(unavailable("the connection was made anew"))),
      })
    })
}
