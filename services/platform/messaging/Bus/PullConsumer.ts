/**
 * Pulls messages of one consumer. Requests a batch whenever no request is open and there is room, so messages arrive as
 * they come, in a buffer from which the handlers take without waiting for more.
 *
 * A session is one inbox on one connection. It ends when the consumer is gone, the connection was made anew, or the
 * broker has been silent for longer than its heartbeats allow; then missing streams and consumers are made and the next
 * session begins. Messages of a lost session are handed out again after their ack wait.
 *
 * This is an own loop over the pull request, not the library's `consume`, which asks again whether or not its messages
 * were handled, and looks for a lost consumer only every `expires`.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { createInbox } from "@nats-io/transport-node"
import { Deferred, Effect, Latch } from "effect"
import type { BusConnection } from "./BusConnection.ts"
import type { ConsumerSpec } from "./StreamProvisioning.ts"
import { keepConsumer } from "./StreamProvisioning.ts"
import { BusMessage } from "./BusMessages.ts"

const expiresMillis = 30_000
const heartbeatMillis = 2_000
const silenceMillis = 5_000

export interface PullConsumer {
  /** Waits for messages and takes at most `max` of them. */
  readonly take: (max: number) => Effect.Effect<ReadonlyArray<BusMessage>>
  /** Runs sessions for ever. */
  readonly run: Effect.Effect<never>
}

export const makePuller = (connection: BusConnection, spec: ConsumerSpec, batch: number): PullConsumer => {
  const filled = Latch.makeUnsafe(false)
  const buffer: Array<BusMessage> = []
  let asked = 0
  let ask = () => {}

  const take = (max: number): Effect.Effect<ReadonlyArray<BusMessage>> =>
    Effect.andThen(
      filled.await,
      Effect.suspend(() => {
        if (buffer.length === 0) return take(max)
        const taken = buffer.splice(0, max)
        if (buffer.length === 0) filled.closeUnsafe()
        ask()
        return Effect.succeed(taken)
      }),
    )

  /**
   * Opens the inbox and requests; calls `end` with the reason when the session is over. Returns a function that closes.
   */
  const open = (nc: NatsConnection, epoch: number, end: (reason: string) => void) => {
    const inbox = createInbox()
    const request = JSON.stringify({ batch, expires: expiresMillis * 1e6, idle_heartbeat: heartbeatMillis * 1e6 })
    let heard = performance.now()
    asked = 0
    ask = () => {
      if (asked > 0 || buffer.length >= batch || nc.isClosed()) return
      asked = batch
      heard = performance.now()
      nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${spec.stream}.${spec.durable}`, request, { reply: inbox })
    }
    const onStatus = (msg: Msg) => {
      const code = msg.headers?.code ?? 0
      if (code === 100) return
      const text = msg.headers?.description ?? ""
      // 408 and 409 end a pull request, some of them because the consumer is gone; 503: no consumer listens there.
      if (code === 503 || code === 404 || /consumer deleted|leadership/i.test(text)) end(`${code} ${text}`)
      else {
        asked = 0
        ask()
      }
    }
    const sub = nc.subscribe(inbox, {
      callback: (error, msg) => {
        if (error !== null) return end(error.message)
        heard = performance.now()
        if (msg.subject === inbox) return onStatus(msg)
        buffer.push(new BusMessage(nc, msg))
        asked = Math.max(0, asked - 1)
        filled.openUnsafe()
        if (asked === 0) ask()
      },
    })
    const unwatch = connection.onChange(() => {
      if (connection.live() === null || connection.epoch() !== epoch) end("connection lost")
    })
    const silence = setInterval(() => {
      if (asked > 0 && performance.now() - heard > silenceMillis) end("no heartbeat")
    }, 1_000)
    ask()
    return () => {
      ask = () => {}
      clearInterval(silence)
      unwatch()
      sub.unsubscribe()
    }
  }

  const session = (nc: NatsConnection, epoch: number) =>
    Effect.gen(function* () {
      const over = yield* Deferred.make<string>()
      yield* Effect.acquireRelease(
        Effect.sync(() => open(nc, epoch, (reason) => void Deferred.doneUnsafe(over, Effect.succeed(reason)))),
        (close) => Effect.sync(close),
      )
      return yield* Deferred.await(over)
    }).pipe(Effect.scoped)

  const run = Effect.gen(function* () {
    const nc = yield* connection.get
    const epoch = connection.epoch()
    yield* Effect.tryPromise(() => keepConsumer(nc, spec, connection.replicas))
    const reason = yield* session(nc, epoch)
    yield* Effect.logDebug(`${spec.stream}/${spec.durable} begins a new session: ${reason}`)
    yield* Effect.sleep("50 millis")
  }).pipe(
    Effect.catch((error) => Effect.andThen(Effect.logDebug(`${spec.durable}: ${error}`), Effect.sleep("500 millis"))),
    Effect.forever,
    // Unhandled messages of the buffer go to another process at once, without waiting for their ack wait.
    Effect.ensuring(Effect.sync(() => {
      filled.closeUnsafe()
      buffer.splice(0).forEach((message) => message.nak())
    })),
  )
  return { take, run }
}
