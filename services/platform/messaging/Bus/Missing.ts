/** Sequences of a stream that should hold a message and do not: JetStream may lose acknowledged messages in a power cut. */
import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { type StreamName, Streams } from "../../../../schemas/bus/Streams.ts"
import { managerOf } from "./Keeper.ts"

/** Sequences of a stream, both ends included. */
export interface MissingRange {
  readonly first: number
  readonly last: number
}

/** So many of them are looked at one by one; more are missing without a look at when that was. */
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

/** Whether what follows a run was stored before the time in question, and so the run was, too. */
const isOlder = async (manager: JetStreamManager, stream: StreamName, { last }: MissingRange, sinceMillis: number) => {
  const next = await manager.streams.getMessage(stream, { seq: last + 1 })
  return next !== null && next.time.getTime() < sinceMillis
}

/** An age of 0 means no end. Ours where the broker keeps less: a message that another limit removed may be a revocation. */
const keptMillis = (stream: StreamName, { max_age }: StreamConfig) =>
  Math.max(Streams[stream].maxAgeMillis, max_age / 1e6)

/**
 * Whether a newer message of a subject replaced what lacks. A message of DIRECTORY says the whole state of its subject's
 * object; those of LIFECYCLE and TRANSFERS each tell of another decision.
 */
const isReplaced = (stream: StreamName, { max_bytes, max_msgs, max_msgs_per_subject }: StreamConfig) =>
  stream === "DIRECTORY" && max_msgs_per_subject > 0 && max_msgs <= 0 && max_bytes <= 0

/**
 * What lacks after the sequence `after` that was seen last (null: nothing of the stream was) and was stored since then.
 * Legitimately absent, and not given, is what is older than this product keeps the stream for, at its front, and on
 * DIRECTORY what a newer message of the subject replaced. What any other limit removed is given.
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
