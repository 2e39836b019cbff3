/** Hands the messages of a durable consumer to its handler, and again those that the handler failed on. */
import { Effect } from "effect"
import { VersionFence } from "../../database/VersionFence.ts"
import type { BusConnection } from "./BusConnection.ts"
import type { BusMessage } from "./BusMessages.ts"
import { makePuller } from "./PullConsumer.ts"
import type { ConsumerSpec } from "./StreamProvisioning.ts"

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

/** Consumes until its scope ends; while the schema refuses this program, its messages are left to other processes. */
export const consume = Effect.fnUntraced(function* <R>(connection: BusConnection, consumer: BusConsumer<R>) {
  const fence = yield* VersionFence
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
  yield* fence.admitted.pipe(
    Effect.andThen(Effect.raceFirst(puller.run, fence.refused)),
    Effect.forever,
    Effect.forkScoped,
  )
  for (let i = 0; i < (consumer.concurrency ?? 1); i++) yield* Effect.forkScoped(Effect.forever(work))
})
