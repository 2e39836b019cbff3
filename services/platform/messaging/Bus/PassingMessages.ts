/**
 * A look at what passed on a stream since the look before, without a consumer: a reader costs the broker nothing but
 * what it asks for, and a busy stream is never read faster than this program looks.
 */
import type { NextMsgRequest, SeqMsgRequest, StoredMsg } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import type { Followed } from "../../../../schemas/bus/SubjectPattern.ts"
import { isMissing, managerOf } from "./StreamProvisioning.ts"

/** The next sequence number to look at. A stream that was made anew counts from one again. */
export interface PassingPosition {
  readonly created: string
  readonly next: number
}

export interface PassingMessages {
  /** Where the next look begins. */
  readonly position: PassingPosition
  readonly messages: ReadonlyArray<StoredMsg>
  /** More came than `most`: the messages behind these were not read. */
  readonly skipped: boolean
}

const infoOf = async (nc: NatsConnection, { stream }: Followed) => {
  const manager = await managerOf(nc)
  try {
    return { manager, info: await manager.streams.info(stream) }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Where a look begins: after `since`; at a stream's end where nothing is known of it. */
const beginOf = (since: PassingPosition | null, created: string, last: number): number => {
  if (since === null) return last + 1
  return since.created === created ? since.next : 1
}

/** The messages of a stream since a position, oldest first, `most` of them; none and the stream's end without one. */
export const passing = async (
  nc: NatsConnection,
  followed: Followed,
  since: PassingPosition | null,
  most: number,
): Promise<PassingMessages> => {
  const found = await infoOf(nc, followed)
  // Of a stream that is made later, all messages are new.
  if (found === null) return { position: since ?? { created: "", next: 1 }, messages: [], skipped: false }
  const { created, state: { last_seq: last } } = found.info
  const messages: Array<StoredMsg> = []
  for (let next = beginOf(since, created, last); next <= last;) {
    if (messages.length === most) return { position: { created, next: last + 1 }, messages, skipped: true }
    const query: NextMsgRequest & SeqMsgRequest = { seq: next, next_by_subj: followed.filter ?? ">" }
    const message = await found.manager.streams.getMessage(followed.stream, query)
    if (message === null || message.seq > last) break
    messages.push(message)
    next = message.seq + 1
  }
  return { position: { created, next: last + 1 }, messages, skipped: false }
}
