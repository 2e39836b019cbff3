/**
 * What the clock decided is written down: an offer that ran out expires, a transfer whose safety window is over moves
 * its domain. Whoever comes first does it, the timer or a command; whoever comes second finds it done.
 */
import { Clock, Data, Effect, Result } from "effect"
import { DependencyUnavailable } from "../../../schemas/problems/Floor.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { type DkimAlgorithm, keepPair, keyOf, makePair } from "../DkimKeys.ts"
import { Changes } from "./Changes.ts"
import { move, revoke, revokedFrom } from "./Completion.ts"
import { facts } from "./Facts.ts"
import { Feature } from "./Feature.ts"
import { locked } from "./Locked.ts"
import { rows } from "./Rows.ts"
import { isDue, type TransferState } from "./TransferState.ts"
import { transact } from "./Transact.ts"
import { transition } from "./TransferTransition.ts"

/** The clock has moved on what a command is about, and nobody has written it down. */
export class Overdue extends Data.TaggedError("Overdue") {}

/**
 * Runs a command as if what is overdue had been written down before it: where it finds something so, or is refused, that
 * is settled, and what moved is reason to run it once more. It is told whether that was tried.
 */
export const settledFirst = <A, E, R, E2, R2>(
  settle: Effect.Effect<boolean, E2, R2>,
  command: (settled: boolean) => Effect.Effect<A, E, R>,
): Effect.Effect<A, Exclude<E, Overdue> | E2 | DependencyUnavailable, R | R2> => {
  const rest = (error: E) => error instanceof Overdue ? new DependencyUnavailable() : error as Exclude<E, Overdue>
  return command(false).pipe(
    Effect.catch((error) =>
      error instanceof DependencyUnavailable
        ? Effect.fail(error)
        : Effect.flatMap(settle, (moved) =>
          moved || error instanceof Overdue ? Effect.mapError(command(true), rest) : Effect.fail(rest(error)))
    ),
  )
}

export const settling = Effect.fnUntraced(function* (algorithm: DkimAlgorithm) {
  const { sql } = yield* Database
  const changes = yield* Changes
  const feature = yield* Feature
  const ids = yield* Ids
  const services = { sql, outbox: yield* Outbox }
  const vault = yield* Vault
  const timers = yield* Timers
  const { lockAccounts, lockWorkspaces } = facts(sql)
  const { byId, liveOf } = rows(sql)
  const { lockTransfer } = locked(sql)
  const run = transact(sql)

  /** Gives whether the state moved. */
  const settle = Effect.fn("Transfers.settle")(function* (read: TransferState) {
    // Before the transaction: a key pair takes long to make. And for nothing while nothing may move.
    const rotates = read.status === "accepted" && read.rotateDkim && (yield* feature.on)
    const prepared = rotates ? yield* keyOf(sql, read).pipe(Effect.orDie) : null
    // A transfer that an older version accepted has no key yet.
    const pair = rotates && prepared === null ? yield* makePair(algorithm) : null
    const key = prepared ?? pair
    const commandId = yield* ids.next
    return yield* run(
      "clock",
      Effect.gen(function* () {
        const accounts = yield* lockAccounts([read.targetUserId], "share")
        const workspaces = yield* lockWorkspaces(read.targetUserId)
        const found = yield* lockTransfer(read.id)
        if (found === null || !(yield* feature.on)) return false
        const { domain, stored } = found
        const now = yield* Clock.currentTimeMillis
        const recipientActive = accounts.get(read.targetUserId)?.active ?? false
        const after = Result.getOrThrow(
          transition(stored.state, { _tag: "Tick", domain, recipientActive, workspaces }, now),
        )
        const { events, state } = after
        if (events.length === 0) return false
        if (state.status === "completed" && state.rotateDkim && key === null) return false
        const completed = state.status === "completed" ? [state] : []
        const revoked = yield* revoke(sql, completed, now)
        const { domainId, id: transferId } = state
        if (completed.length > 0 && pair !== null) yield* keepPair(sql, vault, pair, { domainId, transferId, now })
        const notices = yield* changes.write({
          before: stored,
          after,
          actor: "system",
          commandId,
          revision: domain?.revision ?? null,
          circumstances: { revoked: revokedFrom(revoked, state), key: completed.length > 0 ? key : null },
          now,
        })
        yield* move(services, completed.map((state) => ({ state, key })), revoked, now)
        yield* changes.tell(notices)
        return true
      }),
    )
  })

  /** Settles what was read, where the clock says so. */
  const ifDue = Effect.fnUntraced(function* (state: TransferState | null) {
    return state !== null && isDue(state, yield* Clock.currentTimeMillis) && (yield* settle(state))
  })

  return {
    ifDue,
    /** Of the domain's live transfer. */
    domain: Effect.fnUntraced(function* (domainId: string) {
      const live = yield* liveOf(domainId).pipe(Effect.orDie)
      return yield* ifDue(live?.state ?? null)
    }),
    /** Of one transfer; a timer whose transfer is unknown goes with it. */
    transfer: Effect.fnUntraced(function* (id: string) {
      const stored = yield* byId(id).pipe(Effect.orDie)
      if (stored === null) yield* timers.set(id, []).pipe(Effect.orDie)
      return yield* ifDue(stored?.state ?? null)
    }),
  }
})
export type Settling = Effect.Success<ReturnType<typeof settling>>
