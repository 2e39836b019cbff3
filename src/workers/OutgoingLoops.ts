/** The loops that send the messages of a channel. */
import { Effect } from "effect"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import type { Outgoing } from "../../services/platform/messaging/Outgoing.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { every, loop, sideBySide } from "./Loop.ts"

export interface OutgoingLoops {
  /** Names of the loops: what is due, leases that ended, messages that ended. */
  readonly names: readonly [due: string, leases: string, ended: string]
  /** The topic of the wake-up signal that new messages send. */
  readonly topic: string
  /** Batches in flight. */
  readonly batches: number
}

/**
 * Forks the loops into the current scope. Last in the scope: when it closes, attempts under way hear of it first, since
 * all that closes after waits for them.
 */
export const sending = Effect.fnUntraced(function* (
  { free, prune, stop, work }: Outgoing,
  { batches, names: [due, leases, ended], topic }: OutgoingLoops,
) {
  const wakeUps = yield* WakeUps
  const clocks = yield* ClockHealth
  const turn = Effect.flatMap(clocks.read, ({ healthy }) => healthy ? work() : Effect.succeed(false))
  const turns = Effect.flatMap(wakeUps.waiter(topic), (waiter) => loop(due, waiter, 1_000, turn))
  yield* sideBySide(Effect.replicateEffect(turns, batches))
  yield* every(leases, 5_000, free)
  yield* every(ended, 3_600_000, prune)
  yield* Effect.addFinalizer(() => stop)
})
