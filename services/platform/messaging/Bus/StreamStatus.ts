/** What the broker says of a stream and its consumers. */
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
}

export const markOf = async (nc: NatsConnection, stream: StreamName): Promise<StreamMark> => {
  const { created, state, cluster } = await (await managerOf(nc)).streams.info(stream)
  const server = cluster?.name === undefined ? nc.info?.server_id : cluster.leader
  return { created, lastSeq: state.last_seq, server: server ?? "" }
}

/** All consumers of a stream, with the number of messages that each has yet to get; 256 at most. */
export const subscribersOf = async (nc: NatsConnection, stream: StreamName) => {
  const found = await (await managerOf(nc)).consumers.list(stream).next()
  return found.map(({ name, num_pending }) => ({ name, pending: num_pending }))
}
