/**
 * Named moments at which a process may die. In the program nothing happens at any of them; the crash suite puts something
 * here that ends the process, so that what is promised of each moment is tried and not argued.
 */
import { Context, Effect } from "effect"

export type FaultPoint =
  /** Events are decoded; nothing is written. */
  | "intake.taken"
  /** Events and claims are committed; nothing is sent or acknowledged. */
  | "intake.committed"
  /** The broker was told; the answers may not have reached it. */
  | "intake.acknowledged"
  /** A claimed delivery is about to be sent. */
  | "post.before"
  /** The receiver has answered; nobody else knows. */
  | "post.after"
  | "settle.before"
  | "settle.committed"
  /** Lanes are moved on; nothing is announced. */
  | "scan.committed"
  | "scan.announced"
  | "dispatch.taken"
  /** Claims are committed; nothing is sent. */
  | "dispatch.claimed"
  | "dispatch.acknowledged"
  | "relay.claimed"
  /** The broker has the messages; the rows do not say so. */
  | "relay.published"
  | "relay.settled"

export class Faults extends Context.Reference<{
  readonly hit: (point: FaultPoint) => void
}>("bailiwick/services/platform/Faults", { defaultValue: () => ({ hit: () => {} }) }) {}

/** For Effect code. */
export const faultPoint = (point: FaultPoint): Effect.Effect<void> => Effect.map(Faults, ({ hit }) => hit(point))
