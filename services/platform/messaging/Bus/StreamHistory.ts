/** Reads the past messages of a stream, or makes the broker hand them out to its workers again. */
import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  jetstream,
  JetStreamApiError,
  ReplayPolicy,
} from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { asked, awaited, unavailable } from "./BrokerRequest.ts"
import type { BusConnection } from "./BusConnection.ts"
import type { BusError } from "./BusError.ts"
import { consumerExists, isMissing, managerOf } from "./StreamProvisioning.ts"

/** A message as its stream stores it. */
export interface PastMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly seq: number
}

export interface StreamHistory {
  /** How many messages there were when the history was opened. */
  readonly length: number
  /** At most `max` of them, in order; none where the broker does not give any within 5 s. */
  readonly next: (max: number) => Promise<ReadonlyArray<PastMessage>>
  readonly close: () => Promise<void>
}

/** Messages that are read at a time. */
const pastAtOnce = 500
const nextMillis = 5_000
/** How long the broker keeps the reader after its last request: the work between two requests may take long. */
const idleNanos = 300 * 1e9

const begins = (sinceMillis: number) => ({
  deliver_policy: DeliverPolicy.StartTime,
  opt_start_time: new Date(sinceMillis).toISOString(),
})

/** Opens the history of the stream's messages since then. */
export const openHistory = async (
  nc: NatsConnection,
  stream: StreamName,
  sinceMillis: number,
): Promise<StreamHistory> => {
  const manager = await managerOf(nc)
  const { name, num_pending } = await manager.consumers.add(stream, {
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    inactive_threshold: idleNanos,
    ...begins(sinceMillis),
  })
  const consumer = await jetstream(nc, { timeout: nextMillis }).consumers.get(stream, name)
  return {
    length: num_pending,
    next: async (max) => {
      const found: Array<PastMessage> = []
      const messages = await consumer.fetch({ max_messages: max, expires: nextMillis })
      for await (const { data, seq, subject } of messages) found.push({ data, seq, subject })
      return found
    },
    close: async () => {
      // A failure does not matter: the broker deletes an idle consumer by itself.
      await manager.consumers.delete(stream, name).catch(() => false)
    },
  }
}

/** Gives `take` the stream's messages since then, in order and some at a time; returns how many there were. */
export const readHistory = <E, R>(
  connection: BusConnection,
  stream: StreamName,
  sinceMillis: number,
  take: (messages: ReadonlyArray<PastMessage>) => Effect.Effect<void, E, R>,
): Effect.Effect<number, BusError | E, R> =>
  Effect.gen(function* () {
    const nc = yield* awaited(connection)
    const { length, next } = yield* Effect.acquireRelease(
      asked(() => openHistory(nc, stream, sinceMillis)),
      ({ close }) => Effect.promise(close),
    )
    for (let left = length; left > 0;) {
      const some = yield* asked(() => next(Math.min(left, pastAtOnce)))
      if (some.length === 0) return yield* unavailable(`${left} messages of ${stream} did not come`)
      left -= some.length
      yield* take(some)
    }
    return length
  }).pipe(Effect.scoped)

/** The last message of a subject; null where there is none, or no such stream. */
export const newest = async (nc: NatsConnection, stream: StreamName, subject: string): Promise<PastMessage | null> => {
  const manager = await managerOf(nc)
  const found = await manager.streams.getMessage(stream, { last_by_subj: subject }).catch((error) => {
    if (isMissing(error)) return null
    throw error
  })
  return found === null ? null : { subject, data: found.data, seq: found.seq }
}

const durablesOf = async (nc: NatsConnection, stream: StreamName) => {
  const manager = await managerOf(nc)
  const found: Array<ConsumerInfo> = []
  for await (const info of manager.consumers.list(stream)) {
    if (info.config.durable_name !== undefined) found.push(info)
  }
  return { manager, found }
}

/**
 * Makes the broker hand out the messages since then to the stream's workers again, and older unanswered ones as well.
 */
export const rewind = async (nc: NatsConnection, stream: StreamName, sinceMillis: number): Promise<void> => {
  const { found, manager } = await durablesOf(nc, stream)
  for (const { ack_floor, config, name } of found) {
    const first = ack_floor.stream_seq + 1
    const unanswered = await manager.streams.getMessage(stream, { seq: first }).catch(() => null)
    const older = unanswered !== null && unanswered.time.getTime() < sinceMillis
    await manager.consumers.delete(stream, name)
    await manager.consumers.add(stream, {
      durable_name: name,
      ack_policy: config.ack_policy,
      replay_policy: config.replay_policy,
      ...(config.ack_wait === undefined ? {} : { ack_wait: config.ack_wait }),
      ...(config.max_ack_pending === undefined ? {} : { max_ack_pending: config.max_ack_pending }),
      ...(config.max_deliver === undefined ? {} : { max_deliver: config.max_deliver }),
      ...(config.filter_subject === undefined ? {} : { filter_subject: config.filter_subject }),
      ...(older ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: first } : begins(sinceMillis)),
    }).catch((error) => {
      // The worker made its consumer anew before this call: then it begins with all messages of the stream.
      if (!(error instanceof JetStreamApiError && error.code === consumerExists)) throw error
    })
  }
}

/** The number of messages that the workers of a stream have not answered yet. */
export const unanswered = async (nc: NatsConnection, stream: StreamName): Promise<number> => {
  const { found } = await durablesOf(nc, stream)
  return found.reduce((sum, { num_ack_pending, num_pending }) => sum + num_pending + num_ack_pending, 0)
}
