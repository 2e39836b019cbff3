/** Finds sequences of a stream whose message is gone: JetStream may lose acknowledged messages in a power cut. */
import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { BusStreams, type StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { managerOf } from "./StreamProvisioning.ts"

/** Sequences of a stream, both ends included. */
export interface MissingRange {
  readonly first: number
  readonly last: number
}

/** Gaps whose age is looked up, one by one; further gaps count as missing without a look. */
const looked = 100

const runsOf = (sequences: ReadonlyArray<number>): ReadonlyArray<MissingRange> => {
  const runs: Array<{ first: number; last: number }> = []
  for (const seq of [...sequences].sort((a, b) => a - b)) {
    const run = runs.at(-1)
    if (run?.last === seq - 1) run.last = seq
    else runs.push({ first: seq, last: seq })
  }
  return runs
}

/** Whether the message after a run was stored before the time in question, and so the run as well. */
const isOlder = async (manager: JetStreamManager, stream: StreamName, { last }: MissingRange, sinceMillis: number) => {
  const next = await manager.streams.getMessage(stream, { seq: last + 1 })
  return next !== null && next.time.getTime() < sinceMillis
}

/**
 * How long the stream should keep messages. Never less than this program asks for, even where the broker keeps less: a
 * message that another limit removed may be a revocation.
 */
const keptMillis = (stream: StreamName, { max_age }: StreamConfig) =>
  Math.max(BusStreams[stream].maxAgeMillis, max_age / 1e6)

/**
 * Whether a missing message was replaced by a newer message of its subject. A message of DIRECTORY holds the whole
 * state of its subject's object; each message of LIFECYCLE and TRANSFERS holds another decision.
 */
const isReplaced = (stream: StreamName, { max_bytes, max_msgs, max_msgs_per_subject }: StreamConfig) =>
  stream === "DIRECTORY" && max_msgs_per_subject > 0 && max_msgs <= 0 && max_bytes <= 0

/**
 * The gaps after the sequence `after`, the last known one (null: none), of messages that were stored since then. Not
 * returned are messages at the front that are older than the program keeps the stream, and on DIRECTORY messages that a
 * newer message of the subject replaced. Messages that any other limit removed are returned.
 */
export const missingRanges = async (
  nc: NatsConnection,
  stream: StreamName,
  after: number | null,
  { now, since }: { readonly since: number; readonly now: number },
): Promise<ReadonlyArray<MissingRange>> => {
  const manager = await managerOf(nc)
  const { config, created, state } = await manager.streams.info(stream, { deleted_details: true })
  const { first_seq: first, last_seq: last } = state
  if (after !== null && last < after) return [{ first: last + 1, last: after }]
  const from = after ?? 0
  const oldest = after === null ? Date.parse(created) : since
  const aged = oldest < now - keptMillis(stream, config)
  const replaced = isReplaced(stream, config)
  const front = !aged && !replaced && first > from + 1 ? [{ first: from + 1, last: first - 1 }] : []
  const runs = runsOf((state.deleted ?? []).filter((seq) => seq > from))
  const middle: Array<MissingRange> = []
  for (const [i, run] of runs.entries()) {
    const atEnd = run.last === last
    if (!atEnd && replaced) continue
    if (atEnd || i >= looked || !(await isOlder(manager, stream, run, since))) middle.push(run)
  }
  return [...front, ...middle]
}
