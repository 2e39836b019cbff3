/**
 * The commands on a transfer that exists: accept, decline, cancel, stop. Each loads, decides and writes; where it finds
 * that the clock has come, it settles the transfer first, and begins anew.
 */
import { Array, Clock, Effect, Result } from "effect"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { DomainLimit, NotPending, TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint, type TransferStep } from "../../platform/Failpoints.ts"
import { type Fence, repeated, writeFenced } from "../../platform/database/FencedWrite.ts"
import { heldMeanwhile, whileOpen } from "../../platform/database/Installation.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import { type DkimAlgorithm, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import { limitOf } from "./DecisionReads.ts"
import { type LoadedTransfer, loads, type Seat, type Standing, standing } from "./Load.ts"
import { rows, type Tokens } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./DueTransition.ts"
import { isDue, type TransferState, viewOf } from "./TransferState.ts"
import type { Party, TransferCommand, Transition } from "./TransferCommands.ts"
import { transition } from "./TransferTransition.ts"

/** A command's own id: the same command twice is answered as once. */
interface Command {
  readonly commandId: string
  readonly transferId: string
}

export interface AcceptCommand extends Command {
  readonly accountId: string
  readonly byToken: boolean
  /** Any text; null: the oldest workspace. */
  readonly orgId: string | null
  readonly rotateDkim: boolean
}

export interface PartyCommand extends Command {
  readonly accountId: string
}

export type StopCommand = Command

/** What a transition is written with. */
interface Writing extends Standing {
  readonly step: TransferStep
  readonly actor: string
  readonly commandId: string
  readonly now: number
  readonly tokens?: Tokens
  /** The domain's new key, where this command brings one. */
  readonly pair?: DkimPair | null
  /** Beside what the rows say. */
  readonly while?: ReadonlyArray<Fence>
}

export const handshake = Effect.fnUntraced(function* (settle: Settling, safetyWindow: number, dkim: DkimAlgorithm) {
  const { reads, sql } = yield* Database
  const changes = yield* TransitionWriter
  const oneShot = yield* OneTimeTokens
  const vault = yield* Vault
  const load = loads(reads)
  const { byId } = rows(reads)

  /** Whoever was disabled since authentication does nothing any more. */
  const callerOf = ({ people }: LoadedTransfer, id: string) => {
    const caller = people.get(id)
    return caller?.active ? Effect.succeed(caller) : Effect.fail(new InvalidCredentials())
  }

  /** What the command makes of what was loaded; null where it was here before, and its answer was lost. */
  const decide = Effect.fnUntraced(function* <C extends TransferCommand>(
    { stored }: LoadedTransfer,
    command: C,
    { commandId, now, settled }: { readonly commandId: string; readonly now: number; readonly settled: boolean },
  ) {
    if (stored.commandId === commandId) return null
    if (!settled && isDue(stored.state, now)) return yield* new Overdue()
    const after = transition(stored.state, command, now)
    return Result.isFailure(after) ? yield* Effect.fail(after.failure) : after.success
  })

  /** The transition, and all that goes with it, in one statement; nothing where what it stands on has changed. */
  const write = Effect.fnUntraced(function* (loaded: LoadedTransfer, after: Transition, how: Writing) {
    const { actor, commandId, now, pair = null, step, tokens = {} } = how
    const { domainId, id: transferId } = after.state
    const { fences, gather } = changes.fenced({
      ...{ before: loaded.stored, after, actor, commandId, now, tokens },
      ...{ revision: loaded.revision, reach: loaded.reach, circumstances: { key: pair } },
    })
    const all = [...standing(sql, how), ...(how.while ?? []), ...fences]
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

  /** Before the command, since a key pair takes long to make; none where the acceptance is refused anyway. */
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
    const loaded = (yield* load.forAccept(transferId, accountId)) ?? (yield* new TransferNotFound())
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
    // That it was ended is not known yet where that was in the lost time. What is refused, or is over, is so anyhow.
    if (accepted && loaded.installationHeld) return yield* heldMeanwhile()
    const seat = accepted ? seats.find(({ workspace }) => workspace.id === after.state.targetOrgId)! : null
    yield* write(loaded, after, {
      ...{ step: "accept", actor: `account:${accountId}`, commandId, now, pair: accepted ? pair : null },
      tokens: { stop: oneShot.issue("transfer-stop", transferId) },
      // The limit is exact because all that begins to count against it raises the same number.
      ...(accepted && limit >= 0 ? { accounts: [], arrival: caller } : { accounts: [caller] }),
      ...(seat === null ? {} : { workspaces: [seat.workspace], seats: [seat] }),
      while: accepted ? [whileOpen(sql)] : [],
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
    // The domain went another way meanwhile: that is written down, and this is no answer to an accept.
    return shown.status === "cancelled"
      ? yield* new NotPending({ detail: `Transfer ${transferId} is cancelled: the domain went another way.` })
      : shown
  })

  /** What the caller is to the transfer; whoever is on both sides is what the command asks for. */
  const partyOf = (
    { initiatedBy, sourceUserId, targetUserId }: TransferState,
    accountId: string,
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
      function* ({ accountId, commandId, transferId }: PartyCommand, settled: boolean) {
        const loaded = (yield* load.forParty(transferId, accountId)) ?? (yield* new TransferNotFound())
        const caller = yield* callerOf(loaded, accountId)
        const now = yield* Clock.currentTimeMillis
        const { seat, stored: { state } } = loaded
        const party = partyOf(state, accountId, seat, asked)
        const command = { _tag, party } as Extract<TransferCommand, { _tag: Tag }>
        const after = yield* decide(loaded, command, { commandId, now, settled })
        if (after === null) return viewOf(state, now)
        const bySeat = party === "source" && accountId !== state.sourceUserId
        yield* write(loaded, after, {
          ...{ step, actor: `account:${accountId}`, commandId, now, accounts: [caller] },
          ...(bySeat ? { seats: [seat!] } : {}),
        })
        return viewOf(after.state, now)
      },
    )
    return Effect.fn(`Transfers.${step}`)((command: PartyCommand) =>
      settledFirst(
        settle.transfer(command.transferId),
        (settled) => repeated({ turn: command.transferId, finds: true }, once(command, settled)),
      )
    )
  }

  const stopOnce = Effect.fnUntraced(function* ({ commandId, transferId }: StopCommand, settled: boolean) {
    const loaded = (yield* load.forStop(transferId)) ?? (yield* new TransferNotFound())
    const now = yield* Clock.currentTimeMillis
    const after = yield* decide(loaded, { _tag: "Stop" }, { commandId, now, settled })
    if (after === null) return viewOf(loaded.stored.state, now)
    yield* write(loaded, after, { step: "stop", actor: "stop-token", commandId, now, accounts: [] })
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
