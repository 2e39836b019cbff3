/**
 * The broker: NATS JetStream, from 2.9 on.
 *
 * The layer never fails for the broker: the connection is made in the background and renewed for ever, and missing
 * streams and consumers are made. Guarantees: a publication that succeeded was acknowledged by a stream (which a power
 * cut may still lose: PostgreSQL is the truth); a message is handed out until it is answered, and again where that is
 * in doubt.
 */
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import type { StreamName } from "../../../schemas/bus/BusStreams.ts"
import type { Followed } from "../../../schemas/bus/SubjectPattern.ts"
import { asked, awaited, request } from "./Bus/BrokerRequest.ts"
import type { BusError } from "./Bus/BusError.ts"
import type { BusConfig } from "./Bus/BusConnection.ts"
import { makeConnection } from "./Bus/BusConnection.ts"
import { type BusConsumer, consume } from "./Bus/BusConsumer.ts"
import { publishCore, subscribeCore } from "./Bus/CoreSubjects.ts"
import type { BusAck, BusOutcome, BusPublication } from "./Bus/Publisher.ts"
import { publishingAll } from "./Bus/PublishAll.ts"
import { newest, type PastMessage, readHistory, rewind, unanswered } from "./Bus/StreamHistory.ts"
import { type MissingRange, missingRanges } from "./Bus/MissingRanges.ts"
import { passing, type PassingMessages, type PassingPosition } from "./Bus/PassingMessages.ts"
import { streamRepair } from "./Bus/StreamRepair.ts"
import { markOf, reportOf, type StreamMark, type StreamReport, subscribersOf } from "./Bus/StreamStatus.ts"

export { BusError } from "./Bus/BusError.ts"
export type { BusConfig } from "./Bus/BusConnection.ts"
export type { BusConsumer } from "./Bus/BusConsumer.ts"
export type { PastMessage } from "./Bus/StreamHistory.ts"
export type { MissingRange } from "./Bus/MissingRanges.ts"
export type { PassingMessages, PassingPosition } from "./Bus/PassingMessages.ts"
export { BusMessage } from "./Bus/BusMessages.ts"
export type { BusAck, BusOutcome, BusPublication } from "./Bus/Publisher.ts"
export type { StreamMark } from "./Bus/StreamStatus.ts"

export class Bus extends Context.Service<Bus, {
  /** Publishes and waits up to 5 s for the ack; where no stream takes the subject, streams are repaired once. */
  readonly publish: (
    subject: string,
    data: string | Uint8Array,
    options?: { readonly msgId?: string; readonly headers?: Readonly<Record<string, string>> },
  ) => Effect.Effect<BusAck, BusError>
  /**
   * Publishes all messages at once and waits for every ack; returns their outcomes in order. Never fails. With `epoch`
   * only over that connection: messages that were meant for one broker do not reach the next.
   */
  readonly publishAll: (
    messages: ReadonlyArray<BusPublication>,
    epoch?: number,
  ) => Effect.Effect<ReadonlyArray<BusOutcome>>
  /** Consumes until its scope ends. */
  readonly consume: <R>(consumer: BusConsumer<R>) => Effect.Effect<void, never, R | Scope.Scope>
  /** Publishes without an ack; drops the message where there is no connection or the broker does not take its size. */
  readonly publishCore: (subject: string, data: string) => Effect.Effect<void>
  /** Calls `listener` for each message of a core subject, wildcards allowed, until the scope ends. */
  readonly subscribeCore: (
    subject: string,
    listener: (data: string, subject: string) => void,
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Whether there is a connection and the last check of the streams succeeded. Cheap. */
  readonly status: Effect.Effect<"ok" | "fail">
  /** Why the last check of the streams failed, or null. */
  readonly fault: Effect.Effect<string | null>
  readonly connected: Effect.Effect<boolean>
  /** How many times a connection was made; after a change the broker may be another one, or have lost messages. */
  readonly epoch: Effect.Effect<number>
  /** The broker's version, or null without a connection. */
  readonly serverVersion: Effect.Effect<string | null>
  readonly mark: (stream: StreamName) => Effect.Effect<StreamMark, BusError>
  /** The content of a stream, and the progress of each of its consumers. */
  readonly report: (stream: StreamName) => Effect.Effect<StreamReport, BusError>
  /** Gives `take` the stream's messages since then, in order and some at a time; returns how many there were. */
  readonly history: <E, R>(
    stream: StreamName,
    sinceMillis: number,
    take: (messages: ReadonlyArray<PastMessage>) => Effect.Effect<void, E, R>,
  ) => Effect.Effect<number, BusError | E, R>
  /** The messages of a stream since a position, oldest first, `most` of them; without a position none, and its end. */
  readonly passing: (
    followed: Followed,
    since: PassingPosition | null,
    most: number,
  ) => Effect.Effect<PassingMessages, BusError>
  /** The last message of a subject; null where there is none, or no such stream. */
  readonly newest: (stream: StreamName, subject: string) => Effect.Effect<PastMessage | null, BusError>
  /** Sequences after `after` (null: from the first) that should hold a message stored since then, and do not. */
  readonly missing: (
    stream: StreamName,
    after: number | null,
    sinceMillis: number,
  ) => Effect.Effect<ReadonlyArray<MissingRange>, BusError>
  /** Makes the broker hand out again, to every worker of a stream, the messages since then. */
  readonly rewind: (stream: StreamName, sinceMillis: number) => Effect.Effect<void, BusError>
  /** How many messages of a stream its workers have not answered. */
  readonly unanswered: (stream: StreamName) => Effect.Effect<number, BusError>
  /** All consumers of a stream, with the number of messages that each has yet to get; 256 at most. */
  readonly subscribers: (
    stream: StreamName,
  ) => Effect.Effect<ReadonlyArray<{ readonly name: string; readonly pending: number }>, BusError>
  /** Makes and widens the streams now. */
  readonly heal: Effect.Effect<void, BusError>
}>()("bailiwick/services/platform/messaging/Bus") {
  static readonly layer = (config: BusConfig) => Layer.effect(Bus, make(config))
}

const make = Effect.fnUntraced(function* (config: BusConfig) {
  const connection = yield* makeConnection(config)
  const streams = yield* streamRepair(connection)
  const publishAll = publishingAll(connection, streams.keep)

  return Bus.of({
    publish: Effect.fnUntraced(function* (subject, data, options) {
      const [outcome] = yield* publishAll([{ subject, data, ...options }])
      return yield* Effect.fromResult(outcome!)
    }),
    publishAll,
    consume: (consumer) => consume(connection, consumer),
    publishCore: (subject, data) => publishCore(connection, subject, data),
    subscribeCore: (subject, listener) => subscribeCore(connection, subject, listener),
    status: Effect.sync(() => connection.live() !== null && streams.fault() === null ? "ok" : "fail"),
    fault: Effect.sync(streams.fault),
    connected: Effect.sync(() => connection.live() !== null),
    epoch: Effect.sync(connection.epoch),
    serverVersion: Effect.sync(() => connection.live()?.info?.version ?? null),
    mark: (stream) => request(connection, (nc) => markOf(nc, stream)),
    history: (stream, sinceMillis, take) => readHistory(connection, stream, sinceMillis, take),
    passing: (followed, since, most) => request(connection, (nc) => passing(nc, followed, since, most)),
    newest: (stream, subject) => request(connection, (nc) => newest(nc, stream, subject)),
    missing: Effect.fnUntraced(function* (stream, after, since) {
      const [nc, now] = [yield* awaited(connection), yield* Clock.currentTimeMillis]
      return yield* asked(() => missingRanges(nc, stream, after, { now, since }))
    }),
    rewind: (stream, sinceMillis) => request(connection, (nc) => rewind(nc, stream, sinceMillis)),
    unanswered: (stream) => request(connection, (nc) => unanswered(nc, stream)),
    report: (stream) => request(connection, (nc) => reportOf(nc, stream)),
    subscribers: (stream) => request(connection, (nc) => subscribersOf(nc, stream)),
    heal: streams.heal,
  })
})
