/**
 * The commands on an existing transfer: accept, decline, cancel, stop. Each loads, decides and writes; if a transition
 * is due, it is written first and the command starts again.
 */
import { Array, Clock, Effect, Result } from "effect"
import type { AccountId, CommandId } from "../../../schemas/BrandedIds.ts"
import type { AcceptCommand, CancelCommand, DeclineCommand, StopCommand } from "../../../schemas/mail/DomainCommands.ts"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { DomainLimit, NotPending, TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint, type TransferStep } from "../../platform/Failpoints.ts"
import { repeated, writeFenced } from "../../platform/database/FencedWrite.ts"
import type { Fence } from "../../platform/database/UnitOfWork.ts"
import { heldMeanwhile, whileOpen } from "../../platform/database/Installation.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import { type DkimAlgorithm, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import { limitOf } from "./DecisionReads.ts"
import { type LoadedTransfer, type Seat, type Standing, standing } from "./Load.ts"
import { loadForAccept, loadForParty, loadForStop } from "./LoadForParty.ts"
import { rows, type Tokens } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./DueTransition.ts"
import { isDue, type TransferState, viewOf } from "./TransferState.ts"
import type { Party, TransferCommand, Transition } from "./TransferCommands.ts"
import { receiptOf } from "./TransferReceipt.ts"
import { transition } from "./TransferTransition.ts"

/** The details of a transition's write. */
interface Writing extends Standing {
  readonly step: TransferStep
  readonly actor: string
  readonly commandId: CommandId
  readonly now: number
  readonly tokens?: Tokens
  /** The domain's new key pair, or null. */
  readonly pair?: DkimPair | null
  /** Further fences. */
  readonly while?: ReadonlyArray<Fence>
  /** The receipt of the request's idempotency key. */
  readonly receipt?: PendingReceipt | undefined
}

export const handshake = Effect.fnUntraced(function* (settle: Settling, safetyWindow: number, dkim: DkimAlgorithm) {
  const { reads, sql } = yield* Database
  const changes = yield* TransitionWriter
  const oneShot = yield* OneTimeTokens
  const vault = yield* Vault
  const forAccept = loadForAccept(reads)
  const forParty = loadForParty(reads)
  const forStop = loadForStop(reads)
  const { byId } = rows(reads)

  /** The caller; fails if the account was disabled after authentication. */
  const callerOf = ({ people }: LoadedTransfer, id: AccountId) => {
    const caller = people.get(id)
    return caller?.active ? Effect.succeed(caller) : Effect.fail(new InvalidCredentials())
  }

  /** Decides on the loaded facts; null if this command was done before, and only its answer was lost. */
  const decide = Effect.fnUntraced(function* <C extends TransferCommand>(
    { stored }: LoadedTransfer,
    command: C,
    { commandId, now, settled }: { readonly commandId: CommandId; readonly now: number; readonly settled: boolean },
  ) {
    if (stored.commandId === commandId) return null
    if (!settled && isDue(stored.state, now)) return yield* new Overdue()
    const after = transition(stored.state, command, now)
    return Result.isFailure(after) ? yield* Effect.fail(after.failure) : after.success
  })

  /** Writes the transition with all its effects in one statement; writes nothing if a fenced row has changed. */
  const write = Effect.fnUntraced(function* (loaded: LoadedTransfer, after: Transition, how: Writing) {
    const { actor, commandId, now, pair = null, step, tokens = {} } = how
    const { domainId, id: transferId } = after.state
    const { fences, gather } = changes.fenced({
      before: loaded.stored,
      after,
      actor,
      commandId,
      now,
      tokens,
      revision: loaded.revision,
      reach: loaded.reach,
      circumstances: { key: pair },
    })
    const all = [...standing(sql, how), ...(how.while ?? []), ...fences, ...receiptOf(sql, how.receipt, after, now)]
    if (!Array.isArrayNonEmpty(all)) return
    yield* writeFenced(
      sql,
      all,
      gather.pipe(
        Effect.andThen(pair === null ? Effect.void : keepPair(sql, vault, pair, { domainId, transferId, now })),
        Effect.andThen(faultPoint(`transfer.${step}.written`)),
      ),
    )
    yield* faultPoint(`transfer.${step}.committed`)
  })

  /** Generates the key pair before the command, since it takes long; none if the acceptance would be refused anyway. */
  const pairFor = Effect.fnUntraced(function* ({ accountId, rotateDkim, transferId }: AcceptCommand) {
    const read = rotateDkim ? yield* byId(transferId).pipe(Effect.orDie) : null
    const open = read?.state.status === "pending" && read.state.targetUserId === accountId
    return open ? yield* makePair(dkim) : null
  })

  const limited = (limit: number, owned: number, coming: number) =>
    new DomainLimit({
      detail: `The plan allows ${limit} ${limit === 1 ? "domain" : "domains"}: ${owned} are the account's, and ` +
        `${coming} on their way to it.`,
    })

  const acceptOnce = Effect.fnUntraced(function* (command: AcceptCommand, pair: DkimPair | null, settled: boolean) {
    const { accountId, commandId, transferId } = command
    const loaded = (yield* forAccept(transferId, accountId)) ?? (yield* new TransferNotFound())
    const caller = yield* callerOf(loaded, accountId)
    const now = yield* Clock.currentTimeMillis
    const { coming, domain, owned, seats } = loaded
    const limit = limitOf(caller)
    const after = yield* decide(loaded, {
      _tag: "Accept",
      byToken: command.byToken,
      caller: { id: accountId, email: caller.email ?? "" },
      orgId: command.orgId,
      rotateDkim: command.rotateDkim,
      workspaces: [...new Set(seats.map(({ workspace }) => workspace.id))],
      room: limit < 0 || owned + coming < limit,
      domain,
      safetyWindow,
    }, { commandId, now, settled }).pipe(
      Effect.catchTag("DomainLimit", () => Effect.fail(limited(limit, owned, coming))),
    )
    if (after === null) return viewOf(loaded.stored.state, now)
    const accepted = after.state.status === "accepted"
    // While the installation is paused, the transfer may have ended in the lost history. Refusals are answered as
    // usual.
    if (accepted && loaded.installationHeld) return yield* heldMeanwhile()
    const seat = accepted ? seats.find(({ workspace }) => workspace.id === after.state.targetOrgId)! : null
    yield* write(loaded, after, {
      step: "accept",
      actor: `account:${accountId}`,
      commandId,
      now,
      pair: accepted ? pair : null,
      tokens: { stop: oneShot.issue("transfer-stop", transferId) },
      // The limit is exact, because each write that counts against it raises the same fence.
      ...(accepted && limit >= 0 ? { accounts: [], arrival: caller } : { accounts: [caller] }),
      ...(seat === null ? {} : { workspaces: [seat.workspace], seats: [seat] }),
      while: accepted ? [whileOpen(sql)] : [],
      // An acceptance that finds the domain gone is refused: it keeps no receipt.
      receipt: accepted ? command.receipt : undefined,
    })
    return viewOf(after.state, now)
  })

  const accept = Effect.fn("Transfers.accept")(function* (command: AcceptCommand) {
    const { accountId, transferId } = command
    const pair = yield* pairFor(command)
    const shown = yield* settledFirst(
      settle.transfer(transferId),
      (settled) => repeated({ turn: accountId, finds: true }, acceptOnce(command, pair, settled)),
    )
    // The directory changed the domain: the transfer was written as cancelled, and the accept is refused.
    return shown.status === "cancelled"
      ? yield* new NotPending({ detail: `Transfer ${transferId} is cancelled: the domain went another way.` })
      : shown
  })

  /** The caller's relation to the transfer; a caller on both sides gets the one that the command asks for. */
  const partyOf = (
    { initiatedBy, sourceUserId, targetUserId }: TransferState,
    accountId: AccountId,
    seat: Seat | null,
    asked: "recipient" | "source",
  ): Party => {
    const recipient = accountId === targetUserId
    const source = accountId === sourceUserId || seat !== null && seat.role !== "member"
    if (recipient && asked === "recipient") return "recipient"
    if (source) return "source"
    if (recipient) return "recipient"
    return seat !== null || accountId === initiatedBy ? "onlooker" : "stranger"
  }

  const byParty = <Tag extends "Decline" | "Cancel">(_tag: Tag) => {
    const [step, asked] = _tag === "Decline" ? ["decline", "recipient"] as const : ["cancel", "source"] as const
    const once = Effect.fnUntraced(
      function* ({ accountId, commandId, receipt, transferId }: DeclineCommand | CancelCommand, settled: boolean) {
        const loaded = (yield* forParty(transferId, accountId)) ?? (yield* new TransferNotFound())
        const caller = yield* callerOf(loaded, accountId)
        const now = yield* Clock.currentTimeMillis
        const { seat, stored: { state } } = loaded
        const party = partyOf(state, accountId, seat, asked)
        const command = { _tag, party } as Extract<TransferCommand, { _tag: Tag }>
        const after = yield* decide(loaded, command, { commandId, now, settled })
        if (after === null) return viewOf(state, now)
        const bySeat = party === "source" && accountId !== state.sourceUserId
        yield* write(loaded, after, {
          step,
          actor: `account:${accountId}`,
          commandId,
          now,
          accounts: [caller],
          receipt,
          ...(bySeat ? { seats: [seat!] } : {}),
        })
        return viewOf(after.state, now)
      },
    )
    return Effect.fn(`Transfers.${step}`)((command: DeclineCommand | CancelCommand) =>
      settledFirst(
        settle.transfer(command.transferId),
        (settled) => repeated({ turn: command.transferId, finds: true }, once(command, settled)),
      )
    )
  }

  const stopOnce = Effect.fnUntraced(function* ({ commandId, receipt, transferId }: StopCommand, settled: boolean) {
    const loaded = (yield* forStop(transferId)) ?? (yield* new TransferNotFound())
    const now = yield* Clock.currentTimeMillis
    const after = yield* decide(loaded, { _tag: "Stop" }, { commandId, now, settled })
    if (after === null) return viewOf(loaded.stored.state, now)
    yield* write(loaded, after, { step: "stop", actor: "stop-token", commandId, now, accounts: [], receipt })
    return viewOf(after.state, now)
  })

  const stop = Effect.fn("Transfers.stop")((command: StopCommand) =>
    settledFirst(
      settle.transfer(command.transferId),
      (settled) => repeated({ turn: command.transferId, finds: true }, stopOnce(command, settled)),
    )
  )

  return { accept, decline: byParty("Decline"), cancel: byParty("Cancel"), stop }
})
