/**
 * The commands on a transfer that exists: accept, decline, cancel, stop. Each decides under its locks; where it finds
 * there that the clock has come, it lets go of them, settles the transfer, and begins anew.
 */
import { Clock, Effect, Result } from "effect"
import { InvalidCredentials } from "../../../schemas/problems/Floor.ts"
import { DomainLimit, NotPending, TransferNotFound } from "../../../schemas/problems/Transfers.ts"
import { Database } from "../../platform/Database.ts"
import { heldMeanwhile } from "../../platform/Installation.ts"
import { OneShotTokens } from "../../platform/OneShotTokens.ts"
import { type DkimAlgorithm, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { Vault } from "../../platform/Vault.ts"
import { Changes } from "./Changes.ts"
import { facts, limitOf } from "./Facts.ts"
import { locked } from "./Locked.ts"
import { rows, type Stored, type Tokens } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./Settle.ts"
import { isDue, type TransferState, viewOf } from "./state.ts"
import { transact } from "./Transact.ts"
import type { DomainFacts, Party, TransferCommand } from "./commands.ts"
import { transition } from "./transition.ts"

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

export const handshake = Effect.fnUntraced(function* (settle: Settling, safetyWindow: number, dkim: DkimAlgorithm) {
  const { sql } = yield* Database
  const changes = yield* Changes
  const tokens = yield* OneShotTokens
  const vault = yield* Vault
  const { lockAccounts, lockRole, lockRoom } = facts(sql)
  const { byId } = rows(sql)
  const { lockTransfer } = locked(sql)
  const run = transact(sql)

  /** Whoever was disabled since authentication does nothing any more. */
  const lockCaller = Effect.fnUntraced(function* (id: string, strength: "share" | "no key update") {
    const caller = (yield* lockAccounts([id], strength)).get(id)
    return caller?.active ? caller : yield* new InvalidCredentials()
  })

  const lock = Effect.fnUntraced(function* (id: string) {
    return (yield* lockTransfer(id)) ?? (yield* new TransferNotFound())
  })

  const decide = Effect.fnUntraced(function* <C extends TransferCommand>(
    stored: Stored,
    command: C,
    { actor, commandId, issued, pair = null, revision, settled }: {
      readonly actor: string
      /** What was overdue was written down before, where that could be. */
      readonly settled: boolean
      readonly commandId: string
      readonly revision: bigint | null
      readonly issued?: Tokens
      /** The domain's new key, where this command brings one. */
      readonly pair?: DkimPair | null
    },
  ) {
    const now = yield* Clock.currentTimeMillis
    // This command was here before, and its answer was lost.
    if (stored.commandId === commandId) return viewOf(stored.state, now)
    if (!settled && isDue(stored.state, now)) return yield* new Overdue()
    const after = transition(stored.state, command, now)
    if (Result.isFailure(after)) return yield* Effect.fail(after.failure)
    const { events, state: { domainId, id: transferId } } = after.success
    const key = events.includes("accepted") ? pair : null
    if (key !== null) yield* keepPair(sql, vault, key, { domainId, transferId, now })
    const notices = yield* changes.write({
      before: stored,
      after: after.success,
      actor,
      commandId,
      revision,
      circumstances: { key },
      now,
      ...(issued === undefined ? {} : { tokens: issued }),
    })
    yield* changes.tell(notices)
    return viewOf(after.success.state, now)
  })

  /** Before the transaction, since a key pair takes long to make; none where the acceptance is refused anyway. */
  const pairFor = Effect.fnUntraced(function* ({ accountId, rotateDkim, transferId }: AcceptCommand) {
    const read = rotateDkim ? yield* byId(transferId).pipe(Effect.orDie) : null
    const open = read?.state.status === "pending" && read.state.targetUserId === accountId
    return open ? yield* makePair(dkim) : null
  })

  const accept = Effect.fn("Transfers.accept")(function* (command: AcceptCommand) {
    const { accountId, commandId, transferId } = command
    const pair = yield* pairFor(command)
    const shown = yield* settledFirst(settle.transfer(transferId), (settled) =>
      run(
        "accept",
        Effect.gen(function* () {
          // The limit is exact because the account's row is held from the count to the commit.
          const caller = yield* lockCaller(accountId, "no key update")
          const { coming, owned, workspaces } = yield* lockRoom(accountId)
          const { domain, held, stored } = yield* lock(transferId)
          const limit = limitOf(caller)
          const shown = yield* decide(stored, {
            _tag: "Accept",
            byToken: command.byToken,
            caller,
            orgId: command.orgId,
            rotateDkim: command.rotateDkim,
            workspaces,
            room: limit < 0 || owned + coming < limit,
            domain,
            safetyWindow,
          }, {
            actor: `account:${accountId}`,
            commandId,
            revision: revisionOf(domain),
            settled,
            pair,
            issued: { stop: tokens.issue("transfer-stop", transferId) },
          }).pipe(Effect.catchTag("DomainLimit", () =>
            Effect.fail(
              new DomainLimit({
                detail:
                  `The plan allows ${limit} ${limit === 1 ? "domain" : "domains"}: ${owned} are the account's, and ` +
                  `${coming} on their way to it.`,
              }),
            )))
          // That it was ended is not known yet where that was in the lost time. What is refused, or is over, is so anyhow.
          const begins = shown.status === "accepted" && stored.commandId !== commandId
          return held && begins ? yield* heldMeanwhile() : shown
        }),
      ))
    // The domain went another way meanwhile: that is written down, and this is no answer to an accept.
    return shown.status === "cancelled"
      ? yield* new NotPending({ detail: `Transfer ${transferId} is cancelled: the domain went another way.` })
      : shown
  })

  /** What the caller is to the transfer; whoever is on both sides is what the command asks for. */
  const partyOf = Effect.fnUntraced(function* (state: TransferState, accountId: string, asked: "recipient" | "source") {
    const role = yield* lockRole(accountId, state.sourceOrgId)
    const recipient = accountId === state.targetUserId
    const source = accountId === state.sourceUserId || role === "owner" || role === "admin"
    const party: Party = recipient && asked === "recipient"
      ? "recipient"
      : source
      ? "source"
      : recipient
      ? "recipient"
      : role !== null || accountId === state.initiatedBy
      ? "onlooker"
      : "stranger"
    return party
  })

  const byParty = <Tag extends "Decline" | "Cancel">(_tag: Tag) => {
    const name = _tag === "Decline" ? "decline" : "cancel"
    return Effect.fn(`Transfers.${name}`)(function* ({ accountId, commandId, transferId }: PartyCommand) {
      return yield* settledFirst(settle.transfer(transferId), (settled) =>
        run(
          name,
          Effect.gen(function* () {
            // Unlocked: whose it is never changes.
            const read = (yield* byId(transferId)) ?? (yield* new TransferNotFound())
            yield* lockCaller(accountId, "share")
            const party = yield* partyOf(read.state, accountId, _tag === "Decline" ? "recipient" : "source")
            const { domain, stored } = yield* lock(transferId)
            return yield* decide(stored, { _tag, party } as Extract<TransferCommand, { _tag: Tag }>, {
              actor: `account:${accountId}`,
              commandId,
              revision: revisionOf(domain),
              settled,
            })
          }),
        ))
    })
  }

  const stop = Effect.fn("Transfers.stop")(function* ({ commandId, transferId }: StopCommand) {
    return yield* settledFirst(settle.transfer(transferId), (settled) =>
      run(
        "stop",
        Effect.gen(function* () {
          const { domain, stored } = yield* lock(transferId)
          const revision = revisionOf(domain)
          return yield* decide(stored, { _tag: "Stop" }, { actor: "stop-token", commandId, revision, settled })
        }),
      ))
  })

  return { accept, decline: byParty("Decline"), cancel: byParty("Cancel"), stop }
})

const revisionOf = (domain: (DomainFacts & { readonly revision: bigint }) | null) => domain?.revision ?? null
