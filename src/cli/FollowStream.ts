/**
 * Follows one stream from now on with an ordered consumer: it lives in the broker's memory, affects no worker's
 * consumer, and ends with its connection. "Now" is a sequence number that is looked up once, so that no message is
 * missed while a consumer is made, or made again after a lost connection. Of a stream that is made later, all messages
 * are shown.
 */
import { DeliverPolicy, jetstream, type JsMsg, type StreamInfo } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { StreamName } from "../../schemas/bus/BusStreams.ts"
import type { Followed } from "../../schemas/bus/SubjectPattern.ts"
import type { BusConnection } from "../../services/platform/messaging/Bus/BusConnection.ts"
import { isMissing, managerOf } from "../../services/platform/messaging/Bus/StreamProvisioning.ts"

const atOnce = 500

/** The next sequence number to read of a stream. A stream that was made anew counts from one again. */
interface Position {
  readonly created: string
  next: number
}

const look = async (nc: NatsConnection, stream: StreamName): Promise<StreamInfo | null> => {
  try {
    return await (await managerOf(nc)).streams.info(stream)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

const consume = async (
  nc: NatsConnection,
  { filter, stream }: Followed,
  position: Position,
  listener: (message: JsMsg) => void,
) => {
  const consumer = await jetstream(nc).consumers.get(stream, {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: position.next,
    ...(filter === null ? {} : { filter_subjects: filter }),
  })
  return consumer.consume({
    max_messages: atOnce,
    // Otherwise the library goes on by itself in a stream that was made anew, at its sequence number in the old one.
    abort_on_missing_resource: true,
    callback: (message) => {
      position.next = message.seq + 1
      listener(message)
    },
  })
}

/**
 * Follows for ever. `begun` runs once the position of the first message is known, or that there is no such stream yet;
 * `failed` takes the reason of each failure before the next try.
 */
export const follow = (
  connection: BusConnection,
  followed: Followed,
  listener: (message: JsMsg) => void,
  begun: Effect.Effect<void>,
  failed: (reason: unknown) => Effect.Effect<void>,
): Effect.Effect<never> => {
  let position: Position | null = null
  let first = true
  return Effect.gen(function* () {
    const nc = yield* connection.get
    const info = yield* Effect.tryPromise(() => look(nc, followed.stream))
    if (info !== null && position?.created !== info.created) {
      position = { created: info.created, next: first ? info.state.last_seq + 1 : 1 }
    }
    first = false
    yield* begun
    if (info === null || position === null) return
    const from = position
    yield* Effect.acquireUseRelease(
      Effect.tryPromise(() => consume(nc, followed, from, listener)),
      (messages) => Effect.promise(() => messages.closed()),
      (messages) => Effect.promise(() => messages.close()),
    )
  }).pipe(
    Effect.catch(({ cause }) => failed(cause)),
    Effect.andThen(Effect.sleep("500 millis")),
    Effect.forever,
  )
}
