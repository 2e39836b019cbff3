/**
 * Named moments at which a process may die. In the program nothing happens at any of them; the crash suite puts something
 * here that ends the process, so that what is promised of each moment is tried and not argued.
 */
import { Context, Effect } from "effect"

/** On a webhook's walk. */
export type DeliveryFault =
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

/** Of a provider's jobs. */
export type ProviderFault =
  /** A provider job is claimed; its call is not begun. */
  | "provider.claimed"
  /** The call is marked as begun; nothing has left. */
  | "provider.begun"
  /** The provider has answered; the row does not say so. */
  | "provider.answered"
  | "provider.settled"
  /** Events are signed; nothing is stored. */
  | "lifecycle.signed"
  | "lifecycle.stored"
  /** Of a held installation: intake begins again; nothing says so. */
  | "recovery.rewound"
  | "recovery.renewed"
  /** One change of the lost history is dealt with. */
  | "recovery.reapplied"

/** What writes a transition: a command, or the clock. */
export type TransferStep = "initiate" | "accept" | "decline" | "cancel" | "stop" | "force" | "clock"

/** On a transfer's walk. `written`: all of a transition is, and nothing is committed. */
export type TransferFault =
  | `transfer.${TransferStep}.written`
  | `transfer.${TransferStep}.committed`
  /** Due timers are claimed; nothing is settled. */
  | "timer.claimed"

/** Of the ways out for what people are told. */
export type ChannelFault =
  | "mail.claimed"
  /** The row says that the message leaves; nothing has left. */
  | "mail.marked"
  /** The message was handed to the connection; the server has not answered. */
  | "mail.handed"
  /** The server has answered; the row does not say so. */
  | "mail.answered"
  | "mail.settled"
  | "slack.claimed"
  /** Slack has answered; the row does not say so. */
  | "slack.answered"
  | "slack.settled"

/** Of pushes to streams. */
export type PushFault =
  /** A message is about to be sent. */
  | "push.before"
  /** The receiver has answered; nobody else knows. */
  | "push.after"
  /** What was taken so far is settled. */
  | "push.settled"

/** Of what is decided under an idempotency key. */
export type DecisionFault =
  /** The receipt is begun, or there is none; nothing is decided. */
  | "decision.opened"
  /** All but the places of events is written, or all is decided; nothing is committed. */
  | "decision.written"
  /** Nobody has the answer. */
  | "decision.committed"

export type FaultPoint = DeliveryFault | ProviderFault | TransferFault | ChannelFault | PushFault | DecisionFault

export class Faults extends Context.Reference<{
  readonly hit: (point: FaultPoint) => void
}>("bailiwick/services/platform/Faults", { defaultValue: () => ({ hit: () => {} }) }) {}

/** For Effect code. */
export const faultPoint = (point: FaultPoint): Effect.Effect<void> => Effect.map(Faults, ({ hit }) => hit(point))
