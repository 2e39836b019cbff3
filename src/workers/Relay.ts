/**
 * The relay: carries the outbox to the broker. Any number of them may run. Woken by the outbox's bell, looks by itself
 * every second, rests while the broker is away or the clocks disagree.
 */
import { Effect, Layer } from "effect"
import { Bells } from "../../services/platform/Bells.ts"
import { Bus } from "../../services/platform/Bus.ts"
import { ClockHealth } from "../../services/platform/DatabaseClock.ts"
import { Outbox } from "../../services/platform/Outbox.ts"

const pollMillis = 1_000

const run = Effect.gen(function* () {
  const { relay } = yield* Outbox
  const bus = yield* Bus
  const bells = yield* Bells
  const clocks = yield* ClockHealth

  const ready = Effect.gen(function* () {
    return (yield* clocks.read).healthy && (yield* bus.status) === "ok"
  })

  /** Turns while there is more, then waits for the bell; a turn that fails is tried again a poll later. */
  const loop = <E>(name: string, turn: Effect.Effect<boolean, E>) =>
    Effect.gen(function* () {
      const bell = yield* bells.bell(relay.topic)
      const once = Effect.gen(function* () {
        if ((yield* ready) && (yield* turn)) return
        yield* bell.wait(pollMillis)
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

  // A relay that cannot publish leaves its lanes to one that can.
  yield* Effect.addFinalizer(() => Effect.ignore(relay.releaseLanes))
  yield* every("lanes", 3_000, Effect.flatMap(ready, (ready) => ready ? relay.holdLanes : Effect.void))
  yield* loop("unordered", relay.publishDue)
  yield* loop("ordered", relay.publishOrdered)
  yield* every("recall", 5_000, Effect.flatMap(ready, (ready) => ready ? relay.recall : Effect.void))
  yield* every("leases", 5_000, relay.free)
  yield* every("purge", 30_000, relay.purge)
})

export const Relay = { layer: Layer.effectDiscard(run) } as const
