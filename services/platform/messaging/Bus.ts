/**
 * The broker: NATS JetStream, from 2.9 on.
 *
 * The layer never fails for the broker: the connection is made in the background and renewed for ever, and missing
 * streams and consumers are made. Guarantees: a publication that succeeded was acknowledged by a stream (which a power
 * cut may still lose: PostgreSQL is the truth); a message is handed out until it is answered, and again where that is
 * in doubt.
 */
import type { NatsConnection } from "@nats-io/transport-node"
import { Clock, Context, Effect, Latch, Layer, Result, Scope } from "effect"
import type { StreamName } from "../../../schemas/bus/BusStreams.ts"
import { BusError } from "./Bus/BusError.ts"
import type { BusConfig } from "./Bus/BusConnection.ts"
import { makeConnection } from "./Bus/BusConnection.ts"
import type { ConsumerSpec } from "./Bus/StreamProvisioning.ts"
import { keepStreams, managerOf } from "./Bus/StreamProvisioning.ts"
import type { BusMessage } from "./Bus/BusMessages.ts"
import type { BusAck, BusOutcome, BusPublication } from "./Bus/Publisher.ts"
import { publishOn } from "./Bus/Publisher.ts"
import { openHistory, type PastMessage, rewind, unanswered } from "./Bus/StreamHistory.ts"
import { type MissingRange, missingRanges } from "./Bus/MissingRanges.ts"
import { makePuller } from "./Bus/PullConsumer.ts"

export { BusError } from "./Bus/BusError.ts"
export type { BusConfig } from "./Bus/BusConnection.ts"
export type { PastMessage } from "./Bus/StreamHistory.ts"
export type { MissingRange } from "./Bus/MissingRanges.ts"
export { BusMessage } from "./Bus/BusMessages.ts"
export type { BusAck, BusOutcome, BusPublication } from "./Bus/Publisher.ts"

/** How long a publication waits for its ack, connection and repair of streams included, in milliseconds. */
const deadlineMillis = 5_000
/** Messages of a stream's history that are read at a time. */
const pastAtOnce = 500

export interface BusConsumer<R> extends ConsumerSpec {
  /** The most messages that one call of the handler gets; it does not wait for more than are there. */
  readonly batch: number
  /** How many calls of the handler run at once; 1 keeps the stream's order within this process. */
  readonly concurrency?: number
  /**
   * Answers each message. A message that the handler left unanswered is handed out again: after a failure or a defect
   * with a growing delay, after a success when its ack wait is over.
   */
  readonly handler: (messages: ReadonlyArray<BusMessage>) => Effect.Effect<void, unknown, R>
}

/** The mark of a stream, which the relay compares to see whether the broker lost messages. */
export interface StreamMark {
  /** When the stream was made, as the broker writes it. */
  readonly created: string
  readonly lastSeq: number
  /** The server, or in a cluster the stream's leader. */
  readonly server: string
}

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
  /** Gives `take` the stream's messages since then, in order and some at a time; returns how many there were. */
  readonly history: <E, R>(
    stream: StreamName,
    sinceMillis: number,
    take: (messages: ReadonlyArray<PastMessage>) => Effect.Effect<void, E, R>,
  ) => Effect.Effect<number, BusError | E, R>
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

const unavailable = (cause: unknown) =>
  new BusError({ reason: "unavailable", detail: cause instanceof Error ? cause.message : String(cause) })

const make = Effect.fnUntraced(function* (config: BusConfig) {
  const connection = yield* makeConnection(config)
  let fault: string | null = "the broker has not answered yet"
  let healing: Promise<void> | null = null

  const keep = (nc: NatsConnection): Promise<void> =>
    healing ??= keepStreams(nc).then(() => void (fault = null), (error) => {
      fault = error instanceof Error ? error.message : String(error)
      throw error
    }).finally(() => void (healing = null))

  const awaited = connection.get.pipe(
    Effect.timeoutOrElse({ duration: deadlineMillis, orElse: () => Effect.fail(unavailable("no connection")) }),
  )
  const heal = awaited.pipe(Effect.flatMap((nc) => Effect.tryPromise({ try: () => keep(nc), catch: unavailable })))

  // Checks the streams every 30 s, and at once after a new connection: the broker may be another one.
  const anew = Latch.makeUnsafe(false)
  let epoch = 0
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.onChange(() => {
        if (connection.epoch() !== epoch) anew.openUnsafe()
        epoch = connection.epoch()
      })
    ),
    (stop) => Effect.sync(stop),
  )
  yield* Effect.sync(() => anew.closeUnsafe()).pipe(
    Effect.andThen(heal),
    Effect.matchEffect({
      onSuccess: () => Effect.timeoutOption(anew.await, "30 seconds"),
      onFailure: () => Effect.sleep("1 second"),
    }),
    Effect.forever,
    Effect.forkScoped,
  )

  const sendAll = async (nc: NatsConnection, messages: ReadonlyArray<BusPublication>, until: number) => {
    const left = () => Math.max(1, Math.ceil(until - performance.now()))
    const outcomes = await Promise.all(messages.map((message) => publishOn(nc, message, left())))
    const lost = outcomes.flatMap((o, i) => Result.isFailure(o) && o.failure.reason === "no-stream" ? [i] : [])
    if (lost.length === 0) return outcomes
    if (!await keep(nc).then(() => true, () => false)) return outcomes
    const again = await Promise.all(lost.map((i) => publishOn(nc, messages[i]!, left())))
    lost.forEach((i, n) => outcomes[i] = again[n]!)
    return outcomes
  }

  const publishAll = (
    messages: ReadonlyArray<BusPublication>,
    epoch?: number,
  ): Effect.Effect<ReadonlyArray<BusOutcome>> =>
    Effect.suspend(() => {
      if (messages.length === 0) return Effect.succeed([])
      const none = (error: BusError) => messages.map(() => Result.fail(error))
      const until = performance.now() + deadlineMillis
      return Effect.matchEffect(awaited, {
        onFailure: (error) => Effect.succeed(none(error)),
        onSuccess: (nc) =>
          epoch === undefined || epoch === connection.epoch()
            ? Effect.promise(() => sendAll(nc, messages, until))
            : Effect.succeed(none(unavailable("the connection was made anew"))),
      })
    })

  const consume = <R>(consumer: BusConsumer<R>) =>
    Effect.gen(function* () {
      const puller = makePuller(connection, consumer, consumer.batch)
      const work = Effect.gen(function* () {
        const messages = yield* puller.take(consumer.batch)
        yield* consumer.handler(messages).pipe(
          Effect.onInterrupt(() => Effect.sync(() => messages.forEach((message) => message.nak()))),
          Effect.catchCause((cause) => {
            for (const message of messages) message.nak(Math.min(60_000, 500 * 2 ** Math.min(message.deliveries, 7)))
            return Effect.logWarning(`${consumer.durable} failed on ${messages.length} messages`, cause)
          }),
        )
      })
      yield* Effect.forkScoped(puller.run)
      for (let i = 0; i < (consumer.concurrency ?? 1); i++) yield* Effect.forkScoped(Effect.forever(work))
    })

  const subscribeCore = (subject: string, listener: (data: string, subject: string) => void) =>
    Effect.gen(function* () {
      const nc = yield* connection.get
      const sub = nc.subscribe(subject, {
        callback: (error, msg) => void (error ?? listener(msg.string(), msg.subject)),
      })
      yield* Effect.promise(() => Promise.race([sub.closed, nc.closed()])).pipe(
        Effect.ensuring(Effect.sync(() => sub.unsubscribe())),
      )
      yield* Effect.sleep("1 second")
    }).pipe(Effect.forever, Effect.forkScoped, Effect.asVoid)

  return Bus.of({
    publish: Effect.fnUntraced(function* (subject, data, options) {
      const [outcome] = yield* publishAll([{ subject, data, ...options }])
      return yield* Effect.fromResult(outcome!)
    }),
    publishAll,
    consume,
    // The client throws where a message is larger than its broker takes; a caller's loop must not end for that.
    publishCore: (subject, data) =>
      Effect.try(() => {
        const nc = connection.live()
        if (nc !== null && !nc.isClosed()) nc.publish(subject, data)
      }).pipe(Effect.catch((error) => Effect.logDebug(`${subject}: not published`, error))),
    subscribeCore,
    status: Effect.sync(() => connection.live() !== null && fault === null ? "ok" : "fail"),
    fault: Effect.sync(() => fault),
    connected: Effect.sync(() => connection.live() !== null),
    epoch: Effect.sync(connection.epoch),
    serverVersion: Effect.sync(() => connection.live()?.info?.version ?? null),
    mark: (stream) =>
      Effect.flatMap(awaited, (nc) =>
        Effect.tryPromise({
          try: async () => {
            const { created, state, cluster } = await (await managerOf(nc)).streams.info(stream)
            const server = cluster?.name === undefined ? nc.info?.server_id : cluster.leader
            return { created, lastSeq: state.last_seq, server: server ?? "" }
          },
          catch: unavailable,
        })),
    history: (stream, sinceMillis, take) =>
      Effect.gen(function* () {
        const nc = yield* awaited
        const { length, next } = yield* Effect.acquireRelease(
          Effect.tryPromise({ try: () => openHistory(nc, stream, sinceMillis), catch: unavailable }),
          ({ close }) => Effect.promise(close),
        )
        for (let left = length; left > 0;) {
          const some = yield* Effect.tryPromise({ try: () => next(Math.min(left, pastAtOnce)), catch: unavailable })
          if (some.length === 0) return yield* unavailable(`${left} messages of ${stream} did not come`)
          left -= some.length
          yield* take(some)
        }
        return length
      }).pipe(Effect.scoped),
    missing: Effect.fnUntraced(function* (stream, after, since) {
      const [nc, now] = [yield* awaited, yield* Clock.currentTimeMillis]
      return yield* Effect.tryPromise({
        try: () => missingRanges(nc, stream, after, { now, since }),
        catch: unavailable,
      })
    }),
    rewind: (stream, sinceMillis) =>
      Effect.flatMap(
        awaited,
        (nc) => Effect.tryPromise({ try: () => rewind(nc, stream, sinceMillis), catch: unavailable }),
      ),
    unanswered: (stream) =>
      Effect.flatMap(awaited, (nc) => Effect.tryPromise({ try: () => unanswered(nc, stream), catch: unavailable })),
    subscribers: (stream) =>
      Effect.flatMap(awaited, (nc) =>
        Effect.tryPromise({
          try: async () => {
            const found = await (await managerOf(nc)).consumers.list(stream).next()
            return found.map(({ name, num_pending }) => ({ name, pending: num_pending }))
          },
          catch: unavailable,
        })),
    heal,
  })
})
