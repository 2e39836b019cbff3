/**
 * A forced transfer by an administrator: moves a domain at once, with its credentials and keys, and ends its live
 * transfer.
 */
import { Array, Clock, Effect, Result } from "effect"
import { TransferId } from "../../../schemas/BrandedIds.ts"
import type { ForceCommand } from "../../../schemas/mail/DomainCommands.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { repeated, writeFenced } from "../../platform/database/FencedWrite.ts"
import { Ids } from "../../platform/Ids.ts"
import { heldMeanwhile, whileOpen } from "../../platform/database/Installation.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { type DkimAlgorithm, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { parties } from "./Addressees.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import type { Transition } from "./TransferCommands.ts"
import { revokedFrom } from "./DomainMove.ts"
import { standing } from "./Load.ts"
import { loadForForce } from "./LoadForForce.ts"
import { rows } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./DueTransition.ts"
import { isDue, viewOf } from "./TransferState.ts"
import { receiptOf } from "./TransferReceipt.ts"
import { force as decideForce, transition } from "./TransferTransition.ts"

export interface ForceConfig {
  readonly requestWindowMillis: number
  readonly dkim: DkimAlgorithm
}

export const forcing = Effect.fnUntraced(function* (settle: Settling, config: ForceConfig) {
  const { reads, sql } = yield* Database
  const changes = yield* TransitionWriter
  const ids = yield* Ids
  const vault = yield* Vault
  const forForce = loadForForce(reads)
  const { madeBy } = rows(reads)

  /** Loads the facts; fails with Overdue if a due transition is not written yet. */
  const load = Effect.fnUntraced(function* ({ accountId, domainId, targetEmail }: ForceCommand) {
    const loaded = yield* forForce(domainId, accountId, targetEmail)
    const now = yield* Clock.currentTimeMillis
    const { domain, live, people } = loaded
    if (domain === null) return yield* new TransferNotFound()
    if (live !== null && isDue(live.state, now)) return yield* new Overdue()
    const caller = people.get(accountId)
    if (!caller?.active) return yield* new InvalidCredentials()
    return { ...loaded, caller, domain, now }
  })
  type Loaded = Effect.Success<ReturnType<typeof load>>

  /** Ends the live transfer and moves the domain, in one fenced write. */
  const write = Effect.fnUntraced(function* (
    loaded: Loaded,
    { accountId, commandId, receipt }: ForceCommand,
    after: Transition,
    pair: DkimPair | null,
  ) {
    const { caller, credentials, domain, live, now, people, reach, revision, seats } = loaded
    const { domainId, id: transferId, sourceUserId, targetUserId } = after.state
    const written = { actor: `account:${accountId}`, commandId, now, revision }
    const { fences, gather } = changes.fenced({
      ...written,
      before: null,
      after,
      reach,
      ended: live && {
        ...written,
        before: live,
        after: Result.getOrThrow(transition(live.state, { _tag: "End", by: "force" }, now)),
        // The mails and notices of the forced transfer inform its parties of both.
        circumstances: { silent: parties(after.state) },
      },
      circumstances: {
        key: pair,
        revoked: revokedFrom(credentials, after.state),
        ...(live === null ? {} : { ended: parties(live.state) }),
      },
      moving: { domain, to: { state: after.state, key: pair }, credentials },
    })
    const seat = seats.find(({ workspace }) => workspace.id === after.state.targetOrgId)!
    const all = [
      ...standing(sql, {
        accounts: [caller, ...(people.get(sourceUserId) === undefined ? [] : [people.get(sourceUserId)!])],
        // Not limited by the recipient's plan, but counted: raises `arrivals`, so that a concurrent accept decides
        // again.
        arrival: people.get(targetUserId)!,
        workspaces: [seat.workspace],
        seats: [seat],
      }),
      whileOpen(sql),
      ...fences,
      ...receiptOf(sql, receipt, after, now),
    ]
    if (!Array.isArrayNonEmpty(all)) return
    const kept = pair === null ? Effect.void : keepPair(sql, vault, pair, { domainId, transferId, now })
    yield* writeFenced(
      sql,
      all,
      gather.pipe(Effect.andThen(kept), Effect.andThen(faultPoint("transfer.force.written"))),
    )
    yield* faultPoint("transfer.force.committed")
  })

  /**
   * Fails while the installation is paused: the lost history may contain another decision on this domain.
   */
  const once = Effect.fnUntraced(function* (command: ForceCommand, id: TransferId, pair: DkimPair | null) {
    const { accountId, commandId, domainId, rotateDkim } = command
    const loaded = yield* load(command)
    const { domain, now, people, seats, targetId } = loaded
    const target = targetId === null ? null : people.get(targetId)!
    const after = decideForce({
      _tag: "Force",
      id,
      domain,
      rotateDkim,
      callerId: accountId,
      workspaces: [...new Set(seats.map(({ workspace }) => workspace.id))],
      sourceLabel: people.get(domain.accountId)?.name ?? "",
      target: target && { id: target.id, email: target.email ?? "" },
      requestWindow: config.requestWindowMillis,
    }, now)
    if (Result.isFailure(after)) {
      // If this command succeeded before, its own transfer may now be the reason for the refusal.
      const done = yield* madeBy(domainId, commandId)
      return done === null ? yield* Effect.fail(after.failure) : viewOf(done.state, now)
    }
    if (loaded.installationHeld) return yield* heldMeanwhile()
    yield* write(loaded, command, after.success, pair)
    return viewOf(after.success.state, now)
  })

  return Effect.fn("Transfers.force")(function* (command: ForceCommand) {
    const { domainId, rotateDkim } = command
    const pair = rotateDkim ? yield* makePair(config.dkim) : null
    const id = TransferId.make(yield* ids.next)
    return yield* settledFirst(
      settle.domain(domainId),
      () => repeated({ turn: domainId, finds: true }, once(command, id, pair)),
    )
  })
})
