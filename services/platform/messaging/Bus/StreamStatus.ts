/** The status of a stream and its consumers, as the broker reports it. */
import type { ConsumerInfo, JetStreamManager, NextMsgRequest, SeqMsgRequest } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { managerOf } from "./StreamProvisioning.ts"

/** The mark of a stream, which the relay compares to see whether the broker lost messages. */
export interface StreamMark {
  /** When the stream was made, as the broker writes it. */
  readonly created: string
  readonly lastSeq: number
  /** The server, or in a cluster the stream's leader. */
  readonly server: string
  /** How many servers keep the stream. */
  readonly replicas: number
}

export const markOf = async (nc: NatsConnection, stream: StreamName): Promise<StreamMark> => {
  const { config, created, state, cluster } = await (await managerOf(nc)).streams.info(stream)
  const server = cluster?.name === undefined ? nc.info?.server_id : cluster.leader
  return { created, lastSeq: state.last_seq, server: server ?? "", replicas: config.num_replicas }
}

/** All consumers of a stream, with the number of messages that each has yet to get; 256 at most. */
export const subscribersOf = async (nc: NatsConnection, stream: StreamName) => {
  const found = await (await managerOf(nc)).consumers.list(stream).next()
  return found.map(({ name, num_pending }) => ({ name, pending: num_pending }))
}

/** The content of a stream, and the progress of each of its consumers. */
export interface StreamReport {
  readonly stream: StreamName
  readonly messages: number
  readonly bytes: number
  readonly first_seq: number
  readonly last_seq: number
  /** When the oldest and the newest message were stored; null in an empty stream. */
  readonly first_at: string | null
  readonly last_at: string | null
  /** Null where the broker does not list them to this program's user. */
  readonly consumers: ReadonlyArray<ConsumerReport> | null
}

export interface ConsumerReport {
  readonly name: string
  /** Messages that the consumer has yet to get. */
  readonly pending: number
  /** Messages that it got and has not acknowledged. */
  readonly ack_pending: number
  /** Those of them that it got more than once. */
  readonly redelivered: number
  /** When the oldest message was stored that it has not acknowledged; null where there is none, or it is not known. */
  readonly behind_since: string | null
}

const timeOf = (text: string, messages: number) => messages === 0 ? null : new Date(text).toISOString()

/** One question to the broker, and none for a consumer that has everything. */
const behindSince = async (manager: JetStreamManager, stream: StreamName, of: ConsumerInfo): Promise<string | null> => {
  if (of.num_pending + of.num_ack_pending === 0) return null
  const { filter_subject } = of.config
  const query: NextMsgRequest & SeqMsgRequest = {
    seq: of.ack_floor.stream_seq + 1,
    next_by_subj: filter_subject || ">",
  }
  // A user of the broker may lack the right to read messages.
  const message = await manager.streams.getMessage(stream, query).catch(() => null)
  return message?.time.toISOString() ?? null
}

const consumerOf = async (
  manager: JetStreamManager,
  stream: StreamName,
  one: ConsumerInfo,
): Promise<ConsumerReport> => ({
  name: one.name,
  pending: one.num_pending,
  ack_pending: one.num_ack_pending,
  redelivered: one.num_redelivered,
  behind_since: await behindSince(manager, stream, one),
})

/** The report of a stream; of its consumers 256 at most. */
export const reportOf = async (nc: NatsConnection, stream: StreamName): Promise<StreamReport> => {
  const manager = await managerOf(nc)
  const { state } = await manager.streams.info(stream)
  const found = await manager.consumers.list(stream).next().catch(() => null)
  return {
    stream,
    messages: state.messages,
    bytes: state.bytes,
    first_seq: state.first_seq,
    last_seq: state.last_seq,
    first_at: timeOf(state.first_ts, state.messages),
    last_at: timeOf(state.last_ts, state.messages),
    consumers: found === null ? null : await Promise.all(found.map((one) => consumerOf(manager, stream, one))),
  }
}
