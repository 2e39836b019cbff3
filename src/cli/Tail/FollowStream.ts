/**
 * Follows one stream from now on by an ordered consumer: it lives in the broker's memory, is not part of what any worker
 * remembers, and is gone with whoever made it. "Now" is a position that is looked up once, so that nothing is missed
 * while a consumer is made, or made again after a lost connection; of a stream made later, all is shown.
 */
import { DeliverPolicy, jetstream, type JsMsg, type StreamInfo } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { StreamName } from "../../../schemas/bus/Streams.ts"
import type { Connection } from "../../../services/platform/messaging/Bus/Connection.ts"
import { isMissing, managerOf } from "../../../services/platform/messaging/Bus/Keeper.ts"

const atOnce = 500

export interface Followed {
  readonly stream: StreamName
  /** Which of the stream's subjects; all of them where it is null. */
  readonly filter: string | null
}

/** What was seen of a stream: who was made anew counts from one again. */
interface Place {
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
  place: Place,
  listener: (message: JsMsg) => void,
) => {
  const consumer = await jetstream(nc).consumers.get(stream, {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: place.next,
    ...(filter === null ? {} : { filter_subjects: filter }),
  })
  return consumer.consume({
    max_messages: atOnce,
    // Otherwise the library goes on by itself in a stream that was made anew, from wherever it was in the old one.
    abort_on_missing_resource: true,
    callback: (message) => {
      place.next = message.seq + 1
      listener(message)
    },
  })
}

/**
 * Follows for ever. `begun` runs as soon as the place is known from which everything is shown, or that there is no
 * such stream yet; `failed` takes what kept it from going on, each time before it tries again.
 */
export const follow = (
  connection: Connection,
  followed: Followed,
  listener: (message: JsMsg) => void,
  begun: Effect.Effect<void>,
  failed: (reason: unknown) => Effect.Effect<void>,
): Effect.Effect<never> => {
  let place: Place | null = null
  let first = true
  return Effect.gen(function* () {
    const nc = yield* connection.get
    const info = yield* Effect.tryPromise(() => look(nc, followed.stream))
    if (info !== null && place?.created !== info.created) {
      place = { created: info.created, next: first ? info.state.last_seq + 1 : 1 }
    }
    first = false
    yield* begun
    if (info === null || place === null) return
    const from = place
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
