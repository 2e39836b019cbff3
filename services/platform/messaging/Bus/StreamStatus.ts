/** The status of a stream and its consumers, as the broker reports it. */
import { type ConsumerInfo, DeliverPolicy, type JetStreamManager } from "@nats-io/jetstream"
import type { NextMsgRequest, SeqMsgRequest } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { isBrokerRun } from "./BrokerRun.ts"
import { managerOf } from "./StreamProvisioning.ts"

/** The mark of a stream, which the relay compares to see whether the broker lost messages. */
export interface StreamMark {
  /** When the stream was made, as the broker writes it. */
  readonly created: string
  readonly lastSeq: number
  /** The run of the server (BrokerRun.ts), or in a cluster the stream's leader. */
  readonly server: string
  /** How many servers keep the stream. */
  readonly replicas: number
}

export const markOf = async (nc: NatsConnection, stream: StreamName): Promise<StreamMark> => {
  const { config, created, state, cluster } = await (await managerOf(nc)).streams.info(stream)
  const { server_id, server_name = "" } = nc.info ?? {}
  const server = cluster?.name !== undefined ? cluster.leader : isBrokerRun(server_name) ? server_name : server_id
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

type Delivered = Pick<ConsumerInfo["delivered"], "consumer_seq" | "stream_seq">

interface Position {
  readonly ack_floor: Delivered
  readonly delivered: Delivered
  readonly config: Pick<
    ConsumerInfo["config"],
    "deliver_policy" | "filter_subject" | "filter_subjects" | "opt_start_seq"
  >
}

/**
 * The sequence from which on a consumer has acknowledged nothing; null where the broker does not tell it. Until the first
 * acknowledgement the floor is 0 (seen with 2.9.10), wherever the consumer began; what it got first is told only by its
 * configuration, or while it has got nothing yet.
 */
const unacknowledgedFrom = ({ ack_floor, config, delivered }: Position): number | null => {
  if (ack_floor.consumer_seq > 0 || config.deliver_policy === DeliverPolicy.All) return ack_floor.stream_seq + 1
  if (config.deliver_policy === DeliverPolicy.StartSequence) return config.opt_start_seq ?? null
  return delivered.consumer_seq === 0 ? delivered.stream_seq + 1 : null
}

/**
 * The question for the oldest message that a consumer has not acknowledged; null where one question does not find it: a
 * consumer of several filters, or one of the last message of each subject, which passes over others.
 */
export const oldestOf = (of: Position): NextMsgRequest & SeqMsgRequest | null => {
  const { deliver_policy, filter_subject, filter_subjects = [] } = of.config
  const seq = unacknowledgedFrom(of)
  if (seq === null || filter_subjects.length > 1 || deliver_policy === DeliverPolicy.LastPerSubject) return null
  return { seq, next_by_subj: filter_subjects[0] ?? (filter_subject || ">") }
}

/** One question to the broker, and none for a consumer that has everything. */
const behindSince = async (manager: JetStreamManager, stream: StreamName, of: ConsumerInfo): Promise<string | null> => {
  const query = oldestOf(of)
  if (of.num_pending + of.num_ack_pending === 0 || query === null) return null
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
