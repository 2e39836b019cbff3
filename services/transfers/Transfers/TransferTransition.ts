/**
 * The state machine of a transfer, as pure functions: the service loads the facts, reads the clock, calls a function
 * here and writes the result under the versions that it loaded. The checks are in the documented order of problems
 * (docs/api/mail.md).
 *
 * The clock decides, not the timer: past its time a pending transfer is expired and an accepted one cannot be stopped,
 * whether or not the transition was written. Terminal states are never left.
 */
import { Result } from "effect"
import { isLive } from "../../../schemas/mail/Transfer.ts"
import { Forbidden } from "../../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../../schemas/problems/TransferProblems.ts"
import { sameAddress } from "../../platform/mail/MailAddress.ts"
import type {
  Accept,
  DomainFacts,
  Force,
  Initiate,
  Opening,
  Party,
  Target,
  Tick,
  TransferCommand,
  TransferEvent,
  Transition,
} from "./TransferCommands.ts"
import type { TransferState } from "./TransferState.ts"

/** The problems with which each command may be refused. */
interface Refusals {
  readonly Accept:
    | Problems.TransferNotFound
    | Problems.WrongRecipient
    | Problems.TransferExpired
    | Problems.NotPending
    | Problems.OrgAccessLost
    | Problems.DomainLimit
  readonly Decline: Problems.TransferNotFound | Problems.WrongRecipient | Problems.NotPending
  readonly Cancel: Problems.TransferNotFound | Forbidden | Problems.NotPending
  readonly Stop: Problems.TransferNotFound | Problems.NotStoppable
  readonly Tick: never
  readonly End: never
  readonly Extend: never
}

type Outcome<P> = Result.Result<Transition, P>

const become = (state: TransferState, change: Partial<TransferState>, event: TransferEvent): Outcome<never> =>
  Result.succeed({ state: { ...state, ...change }, events: [event] })

const stay = (state: TransferState): Outcome<never> => Result.succeed({ state, events: [] })

const fresh = (command: Opening, target: Target, now: number): TransferState => ({
  id: command.id,
  domainId: command.domain.id,
  domainName: command.domain.name,
  sourceUserId: command.domain.accountId,
  sourceOrgId: command.domain.workspaceId,
  sourceLabel: command.sourceLabel,
  initiatedBy: command.callerId,
  targetUserId: target.id,
  targetEmail: target.email,
  targetOrgId: null,
  status: "pending",
  note: null,
  rotateDkim: false,
  forced: false,
  initiatedAt: now,
  expiresAt: now + command.requestWindow,
  acceptedAt: null,
  cooloffUntil: null,
  completedAt: null,
  acceptUsed: false,
  stopUsed: false,
})

const isoOf = (time: number) => new Date(time).toISOString()

const unverified = () => new Problems.DomainNotVerified({ detail: "Verify the domain, then begin its transfer." })
const noRecipient = () =>
  new Problems.TargetNotFound({
    detail: "The recipient needs an account with this address before the transfer begins.",
  })
const ownAlready = () =>
  new Problems.SelfTransfer({ detail: "Name the address of another account than the one that has the domain." })

/** A new transfer, or why there is none. */
export const initiate = (
  command: Initiate,
  now: number,
): Outcome<
  | Problems.DomainNotVerified
  | Problems.TargetNotFound
  | Problems.SelfTransfer
  | Problems.TransferActive
  | Problems.BroadcastsInFlight
  | Problems.ScheduledEmails
> => {
  const { broadcasts, callerId, domain, scheduledEmails, target } = command
  if (!domain.verified) return Result.fail(unverified())
  if (target === null) return Result.fail(noRecipient())
  if (target.id === callerId || target.id === domain.accountId) return Result.fail(ownAlready())
  if (command.active !== null) {
    const { id, status } = command.active
    const way = status === "pending" ? "Cancel it, or wait until it ends." : "Stop it, or wait until it is completed."
    return Result.fail(new Problems.TransferActive({ detail: `Transfer ${id} of the domain is ${status}. ${way}` }))
  }
  if (broadcasts.length > 0) return Result.fail(new Problems.BroadcastsInFlight({ blockers: broadcasts }))
  if (scheduledEmails.length > 0) return Result.fail(new Problems.ScheduledEmails({ blockers: scheduledEmails }))
  return become(fresh(command, target, now), { note: command.note }, "initiated")
}

/** A forced transfer by a platform administrator, completed at once. */
export const force = (
  command: Force,
  now: number,
): Outcome<Problems.TargetNotFound | Problems.SelfTransfer | Problems.OrgAccessLost> => {
  const { domain, rotateDkim, target, workspaces: [oldest] } = command
  if (target === null) return Result.fail(noRecipient())
  if (target.id === domain.accountId) return Result.fail(ownAlready())
  if (oldest === undefined) {
    return Result.fail(
      new Problems.OrgAccessLost({ detail: "The recipient does not belong to a workspace: it must join one first." }),
    )
  }
  return become(fresh(command, target, now), {
    status: "completed",
    forced: true,
    rotateDkim,
    targetOrgId: oldest,
    acceptedAt: now,
    completedAt: now,
  }, "forced")
}

/** Whether the source still owns the verified domain in the same workspace. */
const isUnchanged = (state: TransferState, domain: DomainFacts | null): boolean =>
  domain !== null && domain.verified && domain.accountId === state.sourceUserId &&
  domain.workspaceId === state.sourceOrgId

const isExpired = (state: TransferState, now: number): boolean =>
  state.status === "expired" || state.status === "pending" && now >= state.expiresAt

const notPending = (state: TransferState, now: number) => {
  const status = isExpired(state, now) ? "expired" : state.status
  const way = status === "accepted" ? " Until its safety window ends, the link of the stop email stops it." : ""
  return new Problems.NotPending({ detail: `Transfer ${state.id} is ${status}.${way}` })
}

const wrongRecipient = () =>
  new Problems.WrongRecipient({ detail: "Sign in with the account that the transfer was sent to." })

const notStoppable = ({ completedAt, cooloffUntil, id, status }: TransferState, now: number) => {
  const ended = cooloffUntil !== null && now >= cooloffUntil ? cooloffUntil : completedAt
  const when = ended === null ? "" : `, and its safety window ended at ${isoOf(ended)}`
  return new Problems.NotStoppable({ detail: `Transfer ${id} is ${status}${when}.` })
}

const accept = (state: TransferState, command: Accept, now: number): Outcome<Refusals["Accept"]> => {
  const { caller, orgId, workspaces } = command
  if (command.byToken && state.acceptUsed) return Result.fail(new Problems.TransferNotFound())
  // The account that was found at the initiation, if it still has that address.
  if (caller.id !== state.targetUserId || !sameAddress(caller.email, state.targetEmail)) {
    return Result.fail(wrongRecipient())
  }
  if (isExpired(state, now)) {
    const detail = `It could be accepted until ${isoOf(state.expiresAt)}: the sender may begin another transfer.`
    return Result.fail(new Problems.TransferExpired({ detail }))
  }
  if (state.status !== "pending") return Result.fail(notPending(state, now))
  if (!isUnchanged(state, command.domain)) return become(state, { status: "cancelled" }, "overtaken")
  const chosen = orgId === null ? workspaces[0] : workspaces.find((id) => id === orgId.toLowerCase())
  if (chosen === undefined) {
    const asked = orgId === null ? "any workspace" : "the workspace that target_org_id names"
    return Result.fail(new Problems.OrgAccessLost({ detail: `The caller does not belong to ${asked}.` }))
  }
  if (!command.room) return Result.fail(new Problems.DomainLimit())
  return become(state, {
    status: "accepted",
    targetOrgId: chosen,
    rotateDkim: command.rotateDkim,
    acceptedAt: now,
    cooloffUntil: now + command.safetyWindow,
    acceptUsed: command.byToken,
  }, "accepted")
}

const decline = (state: TransferState, party: Party, now: number): Outcome<Refusals["Decline"]> => {
  if (party === "stranger") return Result.fail(new Problems.TransferNotFound())
  if (party !== "recipient") return Result.fail(wrongRecipient())
  if (state.status !== "pending" || isExpired(state, now)) return Result.fail(notPending(state, now))
  return become(state, { status: "declined" }, "declined")
}

const cancel = (state: TransferState, party: Party, now: number): Outcome<Refusals["Cancel"]> => {
  if (party === "stranger") return Result.fail(new Problems.TransferNotFound())
  if (party !== "source") {
    return Result.fail(new Forbidden({ detail: "Only the account that offers the domain can cancel its transfer." }))
  }
  if (state.status !== "pending" || isExpired(state, now)) return Result.fail(notPending(state, now))
  return become(state, { status: "cancelled" }, "cancelled")
}

const stop = (state: TransferState, now: number): Outcome<Refusals["Stop"]> => {
  if (state.stopUsed) return Result.fail(new Problems.TransferNotFound())
  if (state.status !== "accepted" || now >= state.cooloffUntil!) return Result.fail(notStoppable(state, now))
  return become(state, { status: "reversed", stopUsed: true }, "stopped")
}

const tick = (state: TransferState, command: Tick, now: number): Outcome<never> => {
  if (state.status === "pending" && isExpired(state, now)) return become(state, { status: "expired" }, "expired")
  if (state.status !== "accepted" || now < state.cooloffUntil!) return stay(state)
  if (!isUnchanged(state, command.domain)) return become(state, { status: "reversed" }, "overtaken")
  const { recipientActive, workspaces } = command
  const workspace = workspaces.find((id) => id === state.targetOrgId) ?? workspaces[0]
  if (!recipientActive || workspace === undefined) return become(state, { status: "reversed" }, "undeliverable")
  return become(
    state,
    { status: "completed", targetOrgId: workspace, completedAt: now, cooloffUntil: null },
    "completed",
  )
}

const end = (state: TransferState, by: "force" | "directory", now: number): Outcome<never> => {
  if (state.status === "pending" && isExpired(state, now)) return become(state, { status: "expired" }, "expired")
  if (!isLive(state.status)) return stay(state)
  const status = state.status === "pending" ? "cancelled" : "reversed"
  return become(state, { status }, by === "force" ? "superseded" : "overtaken")
}

const extend = (state: TransferState, until: number): Outcome<never> =>
  state.status === "accepted" && until > state.cooloffUntil!
    ? become(state, { cooloffUntil: until }, "extended")
    : stay(state)

const decide = (state: TransferState, command: TransferCommand, now: number) => {
  switch (command._tag) {
    case "Accept":
      return accept(state, command, now)
    case "Decline":
      return decline(state, command.party, now)
    case "Cancel":
      return cancel(state, command.party, now)
    case "Stop":
      return stop(state, now)
    case "Tick":
      return tick(state, command, now)
    case "End":
      return end(state, command.by, now)
    case "Extend":
      return extend(state, command.until)
  }
}

/** The state and events after a command at `now`, or the problem with which it is refused. */
export const transition = <C extends TransferCommand>(
  state: TransferState,
  command: C,
  now: number,
): Outcome<Refusals[C["_tag"]]> => decide(state, command, now) as Outcome<Refusals[C["_tag"]]>
