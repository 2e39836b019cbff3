/**
 * Follows one stream from now on by an ordered consumer: it lives in the broker's memory, is not part of what any worker
 * remembers, and is gone with whoever made it. After a lost connection or stream it goes on by itself.
 */
import { DeliverPolicy, jetstream, type JsMsg } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { StreamName } from "../../../schemas/bus/Streams.ts"
import type { Connection } from "../../../services/platform/Bus/Connection.ts"

const atOnce = 500

export interface Followed {
  readonly stream: StreamName
  /** Which of the stream's subjects; all of them where it is null. */
  readonly filter: string | null
}

const consume = async (nc: NatsConnection, { filter, stream }: Followed, listener: (message: JsMsg) => void) => {
  const consumer = await jetstream(nc).consumers.get(stream, {
    deliver_policy: DeliverPolicy.New,
    ...(filter === null ? {} : { filter_subjects: filter }),
  })
  return consumer.consume({ max_messages: atOnce, callback: listener })
}

/** Follows for ever; `begun` runs each time the broker has begun to send. */
export const follow = (
  connection: Connection,
  followed: Followed,
  listener: (message: JsMsg) => void,
  begun: Effect.Effect<void>,
): Effect.Effect<never> =>
  Effect.gen(function* () {
    const nc = yield* connection.get
    yield* Effect.acquireUseRelease(
      Effect.tryPromise(() => consume(nc, followed, listener)),
      (messages) => Effect.andThen(begun, Effect.promise(() => messages.closed())),
      (messages) => Effect.promise(() => messages.close()),
    )
  }).pipe(
    Effect.catch((error) => Effect.logDebug(`${followed.stream}: ${error}`)),
    Effect.andThen(Effect.sleep("500 millis")),
    Effect.forever,
  )
