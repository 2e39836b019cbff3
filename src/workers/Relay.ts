/**
 * Carries the outbox to the broker. Any number of relays may run. A relay acts on the outbox's wake-up signal and every
 * second, and pauses while the broker is away, the clocks disagree or the
 * schema refuses this program. After each new connection it first detects what
 * the broker has lost, so that no newer message overtakes those that are published again.
 */
import { Clock, Effect, Layer } from "effect"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { VersionFence } from "../../services/platform/database/VersionFence.ts"
import { Outbox } from "../../services/platform/messaging/Outbox.ts"
import { publishedMetrics } from "../../services/platform/messaging/Outbox/OrderedRelay.ts"
import { WorkerHeartbeats } from "../../services/platform/observability/WorkerHeartbeats.ts"
import { sideBySide } from "./Loop.ts"

const pollMillis = 1_000
/**
 * From the beginning of one turn to the next, unless a turn left something. A turn of one command's messages costs
 * PostgreSQL three times as much a command as a turn of five.
 */
const spacingMillis = 10
const recallMillis = 5_000
const recallPollMillis = 250
const incompleteRecalls = 40

const run = Effect.gen(function* () {
  const { relay } = yield* Outbox
  const bus = yield* Bus
  const wakeUps = yield* WakeUps
  const clocks = yield* ClockHealth
  const fence = yield* VersionFence
  let recalledEpoch = -1
  yield* publishedMetrics

  const connected = Effect.gen(function* () {
    return (yield* clocks.read).healthy && (yield* fence.refusal) === null && (yield* bus.connected)
  })
  /** Repeats `turn` while there is more, then waits for the wake-up signal; a failed turn is run again a poll later. */
  const loop = <E>(name: string, turn: (epoch: number) => Effect.Effect<boolean, E>) =>
    Effect.gen(function* () {
      yield* WorkerHeartbeats.running(`relay, ${name}`)
      const waiter = yield* wakeUps.waiter(relay.topic)
      const once = Effect.gen(function* () {
        const epoch = recalledEpoch
        const began = yield* Clock.currentTimeMillis
        const ready = (yield* connected) && (yield* bus.epoch) === epoch
        if (ready && (yield* turn(epoch))) return
        yield* waiter.wait(pollMillis)
        const early = began + spacingMillis - (yield* Clock.currentTimeMillis)
        // A clock that was set back makes no longer pause.
        if (early > 0) yield* Effect.sleep(Math.min(early, spacingMillis))
      })
      yield* once.pipe(
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logWarning(`relay: ${name} failed`, cause), Effect.sleep(pollMillis))
        ),
        Effect.forever,
      )
    }).pipe(Effect.forkScoped)

  const every = <A, E>(name: string, millis: number, turn: Effect.Effect<A, E>) =>
    turn.pipe(
      Effect.catchCause((cause) => Effect.logWarning(`relay: ${name} failed`, cause)),
      Effect.andThen(Effect.sleep(millis)),
      Effect.forever,
      Effect.forkScoped,
    )

  let sinceRecall = recallMillis
  let incomplete = 0
  const recall = Effect.gen(function* () {
    const epoch = yield* bus.epoch
    sinceRecall += recallPollMillis
    if (!(yield* connected) || (epoch === recalledEpoch && sinceRecall < recallMillis)) return
    sinceRecall = 0
    const complete = yield* relay.recall
    if (epoch === recalledEpoch) return
    // A stream that cannot be inspected holds up the others for some 10 s only.
    incomplete = complete ? 0 : incomplete + 1
    if (!complete && incomplete < incompleteRecalls) return
    recalledEpoch = epoch
    yield* wakeUps.notify(relay.topic)
  })

  // A stopping relay releases its partitions of the outbox to another relay.
  yield* Effect.addFinalizer(() => Effect.ignore(relay.releasePartitions))
  yield* every("lanes", pollMillis, Effect.flatMap(connected, (ok) => ok ? relay.leasePartitions : Effect.void))
  yield* sideBySide(Effect.andThen(loop("unordered", relay.publishDue), loop("ordered", relay.publishOrdered)))
  yield* every("recall", recallPollMillis, recall)
  yield* every("leases", 5_000, relay.free)
  yield* every("purge", 30_000, relay.purge)
})

export const Relay = { layer: Layer.effectDiscard(run) } as const
