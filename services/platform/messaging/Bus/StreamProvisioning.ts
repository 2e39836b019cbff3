/**
 * Provisions the streams and consumers of the broker: makes missing ones, widens those that keep less than they should,
 * and never reduces any, so that what an operator enlarged stays.
 */
import type { ConsumerConfig, JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  jetstreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { nanos } from "@nats-io/transport-node"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { BusStreams, duplicateWindowMillis, streamNames } from "../../../../schemas/bus/BusStreams.ts"

/** The broker's error code for a durable consumer that exists with another configuration. */
export const consumerExists = 10_148

const has = (error: unknown, code: number) => error instanceof JetStreamApiError && error.code === code

/** Whether the broker said that it has no such stream. */
export const isMissing = (error: unknown): boolean => has(error, JetStreamApiCodes.StreamNotFound)

/** The manager of a connection, without the account request that the library makes first. */
export const managerOf = (nc: NatsConnection): Promise<JetStreamManager> =>
  jetstreamManager(nc, { checkAPI: false, timeout: 5_000 })

/** The longer of two durations; 0 means no end. */
const longer = (a: number, b: number) => a === 0 || b === 0 ? 0 : Math.max(a, b)

const widened = (is: StreamConfig, name: StreamName, replicas: number): Partial<StreamConfig> | null => {
  const { subjects, maxAgeMillis } = BusStreams[name]
  const missing = subjects.filter((subject) => !is.subjects.includes(subject))
  const max_age = longer(is.max_age, nanos(maxAgeMillis))
  const duplicate_window = Math.max(is.duplicate_window, nanos(duplicateWindowMillis))
  const num_replicas = Math.max(is.num_replicas, replicas)
  const same = missing.length === 0 && num_replicas === is.num_replicas && max_age === is.max_age &&
    duplicate_window === is.duplicate_window &&
    is.discard === DiscardPolicy.New
  return same
    ? null
    : { subjects: [...is.subjects, ...missing], max_age, duplicate_window, num_replicas, discard: DiscardPolicy.New }
}

const keepStream = async (jsm: JetStreamManager, name: StreamName, replicas: number): Promise<void> => {
  try {
    const change = widened((await jsm.streams.info(name)).config, name, replicas)
    if (change !== null) await jsm.streams.update(name, change)
  } catch (error) {
    if (!isMissing(error)) throw error
    const { subjects, maxAgeMillis } = BusStreams[name]
    await jsm.streams.add({
      name,
      subjects: [...subjects],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      storage: StorageType.File,
      num_replicas: replicas,
      max_age: nanos(maxAgeMillis),
      duplicate_window: nanos(duplicateWindowMillis),
    })
  }
}

/**
 * Makes and widens every stream, to `replicas` servers at least; several processes may do so at once. The broker refuses
 * more replicas than it has servers.
 */
export const keepStreams = async (nc: NatsConnection, replicas = 1): Promise<void> => {
  const jsm = await managerOf(nc)
  await Promise.all(streamNames.map((name) => keepStream(jsm, name, replicas)))
}

export interface ConsumerSpec {
  readonly stream: StreamName
  /** The name under which the broker remembers what was acknowledged; one per kind of worker, shared by processes. */
  readonly durable: string
  /** A subject pattern of the stream; by default all subjects. */
  readonly filter?: string
  /** A message without an answer is handed out again after so many milliseconds. */
  readonly ackWaitMillis: number
  /** How many messages may be unanswered over all processes. */
  readonly maxAckPending: number
}

/** Makes the stream where it is missing and the durable pull consumer with exactly this configuration. */
export const keepConsumer = async (nc: NatsConnection, spec: ConsumerSpec, replicas: number): Promise<void> => {
  const jsm = await managerOf(nc)
  await keepStream(jsm, spec.stream, replicas)
  const changeable = { ack_wait: nanos(spec.ackWaitMillis), max_ack_pending: spec.maxAckPending }
  const config: Partial<ConsumerConfig> = {
    durable_name: spec.durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    replay_policy: ReplayPolicy.Instant,
    max_deliver: -1,
    ...(spec.filter === undefined ? {} : { filter_subject: spec.filter }),
    ...changeable,
  }
  try {
    const { config: is } = await jsm.consumers.info(spec.stream, spec.durable)
    if (is.ack_wait !== changeable.ack_wait || is.max_ack_pending !== changeable.max_ack_pending) {
      await jsm.consumers.update(spec.stream, spec.durable, changeable)
    }
  } catch (error) {
    if (!has(error, JetStreamApiCodes.ConsumerNotFound)) throw error
    await jsm.consumers.add(spec.stream, config).catch((error) => {
      if (!has(error, consumerExists)) throw error
    })
  }
}
