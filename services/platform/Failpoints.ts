/**
 * Fault points: named moments at which a process may die. In the program nothing happens at them; the crash suite ends
 * the process there, so that the guarantees about each moment are tested.
 */
import { Context, Effect } from "effect"

/** Points of a webhook's delivery. */
export type DeliveryFault =
  /** Events are decoded; nothing is written. */
  | "intake.taken"
  /** Events and claims are committed; nothing is sent or acknowledged. */
  | "intake.committed"
  /** The acknowledgements were sent; the broker may not have got them. */
  | "intake.acknowledged"
  /** A claimed delivery is about to be sent. */
  | "post.before"
  /** The receiver has answered; the answer is only in memory. */
  | "post.after"
  | "settle.before"
  | "settle.committed"
  /** Queue states have their next due time; nothing is announced. */
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

/** Points of the provider's jobs, of signing and of recovery. */
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
  /** A held installation: intake begins again; no row says so yet. */
  | "recovery.rewound"
  | "recovery.renewed"
  /** One change of the lost history is reapplied. */
  | "recovery.reapplied"

/** The cause of a transition: a command, or the clock. */
export type TransferStep = "initiate" | "accept" | "decline" | "cancel" | "stop" | "force" | "clock"

/** Points of a transfer. `written`: all of a transition is written, and nothing is committed. */
export type TransferFault =
  | `transfer.${TransferStep}.written`
  | `transfer.${TransferStep}.committed`
  /** Due timers are claimed; nothing is settled. */
  | "timer.claimed"

/** Points of mails and Slack messages. */
export type ChannelFault =
  | "mail.claimed"
  /** The row says that the message is being sent; nothing has left. */
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

/** Points of pushes to streams. */
export type PushFault =
  /** A message is about to be sent. */
  | "push.before"
  /** The receiver has answered; the answer is only in memory. */
  | "push.after"
  /** The deliveries so far are settled. */
  | "push.settled"

/** Points of a mail of notices to a person. */
export type NoticeFault =
  /** The mail is added and its notices are marked as told; nothing is committed. */
  | "notices.written"
  | "notices.committed"

/** Points of a command under an idempotency key. */
export type DecisionFault =
  /** The receipt is begun, or there is none; nothing is decided. */
  | "decision.opened"
  /**
   * In a transaction: all but the events' positions is written. In a fenced write: all is decided. Nothing is
   * committed.
   */
  | "decision.written"
  /** The command is committed; the client has no answer yet. */
  | "decision.committed"

/** Points of a security event of an identity provider. */
export type SignalFault =
  /** All that the event does is written, with its audit record; nothing is committed. */
  | "signal.written"
  /** The event is committed; its transmitter has no answer. */
  | "signal.committed"

/** Points of an assertion's check; nothing of it is committed at `decision.written`. */
export type AssertionFault =
  /** The proof is used up; the issuer has no answer. */
  "assertion.committed"

/** Points of the transparency log. */
export type LogFault =
  /** Leaves are numbered, tiles and head are written; nothing is committed. */
  | "log.written"
  /** The log has grown; its checkpoint is not published. */
  | "log.integrated"
  /** The broker has the checkpoint; no row says so. */
  | "log.published"

/** Points of maintenance. */
export type MaintenanceFault =
  /** A batch of old rows is deleted; others are left. */
  | "prune.committed"
  /** A failing webhook is paused and its notice is added; nothing is committed. */
  | "failing.written"
  | "failing.committed"
  /** Missed events have deliveries and their job goes on after them; nothing is committed. */
  | "missed.written"
  | "missed.committed"
  /** A bite of a backfill and its progress are written; nothing is committed. */
  | "backfill.written"
  | "backfill.committed"

export type FaultPoint =
  | DeliveryFault
  | ProviderFault
  | TransferFault
  | ChannelFault
  | PushFault
  | NoticeFault
  | DecisionFault
  | SignalFault
  | AssertionFault
  | LogFault
  | MaintenanceFault

export class Failpoints extends Context.Reference<{
  readonly hit: (point: FaultPoint) => void
}>("bailiwick/services/platform/Failpoints", { defaultValue: () => ({ hit: () => {} }) }) {}

/** Hits a fault point from Effect code. */
export const faultPoint = (point: FaultPoint): Effect.Effect<void> => Effect.map(Failpoints, ({ hit }) => hit(point))
