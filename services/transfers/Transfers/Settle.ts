/**
 * What the clock decided is written down: an offer that ran out expires, a transfer whose safety window is over moves
 * its domain. Whoever comes first does it, the timer or a command; whoever comes second finds it done.
 */
import { Clock, Effect, Result } from "effect"
import { Database } from "../../platform/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { Outbox } from "../../platform/Outbox.ts"
import { Timers } from "../../platform/Timers.ts"
import { Vault } from "../../platform/Vault.ts"
import { type DkimAlgorithm, makePair } from "../DkimKeys.ts"
import { Changes } from "./Changes.ts"
import { move } from "./Completion.ts"
import { facts } from "./Facts.ts"
import { Feature } from "./Feature.ts"
import { rows } from "./Rows.ts"
import { isDue, type TransferState } from "./state.ts"
import { transact } from "./Transact.ts"
import { transition } from "./transition.ts"

export const settling = Effect.fnUntraced(function* (algorithm: DkimAlgorithm) {
  const { sql } = yield* Database
  const changes = yield* Changes
  const feature = yield* Feature
  const ids = yield* Ids
  const services = { sql, outbox: yield* Outbox, vault: yield* Vault }
  const timers = yield* Timers
  const { lockAccounts, lockDomain, lockWorkspaces } = facts(sql)
  const { byId, liveOf, lockById } = rows(sql)
  const run = transact(sql)

  /** Gives whether the state moved. */
  const settle = Effect.fn("Transfers.settle")(function* (read: TransferState) {
    // Before the transaction: a key pair takes long to make.
    const pair = read.status === "accepted" && read.rotateDkim ? yield* makePair(algorithm) : null
    const commandId = yield* ids.next
    return yield* run(
      "clock",
      Effect.gen(function* () {
        const accounts = yield* lockAccounts([read.targetUserId], "share")
        const workspaces = yield* lockWorkspaces(read.targetUserId)
        const domain = yield* lockDomain(read.domainId)
        const stored = yield* lockById(read.id)
        if (stored === null || !(yield* feature.on)) return false
        const now = yield* Clock.currentTimeMillis
        const recipientActive = accounts.get(read.targetUserId)?.active ?? false
        const after = Result.getOrThrow(
          transition(stored.state, { _tag: "Tick", domain, recipientActive, workspaces }, now),
        )
        const { events, state } = after
        if (events.length === 0) return false
        if (state.status === "completed" && state.rotateDkim && pair === null) return false
        const notices = yield* changes.write({
          before: stored,
          after,
          actor: "system",
          commandId,
          revision: domain?.revision ?? null,
          now,
        })
        if (state.status === "completed") yield* move(services, [{ state, pair }], now)
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
