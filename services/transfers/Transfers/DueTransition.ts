/**
 * Writes the transitions that are due by the clock: a pending transfer past its time expires, and an accepted one after
 * its safety window moves its domain. The timer or a command writes it, whichever comes first; the other finds it done.
 * One load, one decision, one write, as in every command (docs/transfers.md).
 */
import { Array, Clock, Data, Effect, Result } from "effect"
import { CommandId, type DomainId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { holds, repeated, writeFenced } from "../../platform/database/FencedWrite.ts"
import { Ids } from "../../platform/Ids.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { type DkimAlgorithm, type DkimKey, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import type { Transition } from "./TransferCommands.ts"
import { revokedFrom } from "./DomainMove.ts"
import { FeatureFlag } from "./FeatureFlag.ts"
import { standing } from "./Load.ts"
import { loadForClock } from "./LoadForClock.ts"
import { rows } from "./Rows.ts"
import { isDue, type TransferState } from "./TransferState.ts"
import { transition } from "./TransferTransition.ts"

/** A transition of the command's transfer is due and not written yet. */
export class Overdue extends Data.TaggedError("Overdue") {}

/**
 * Runs a command as if due transitions had been written before it. If the command is refused, or finds one overdue, the
 * due transition is written; if that changed a transfer, or one was overdue, the command runs once more, with the
 * argument true.
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

/** Kept between the attempts of one write. */
interface Kept {
  readonly commandId: CommandId
  /** The pair for a transfer that an older version accepted without a key. Generated once, before any lock is taken. */
  pair: DkimPair | null
  /** Whether a transition was due before this attempt; where none is due now, another process has written it. */
  due: boolean
}

export const settling = Effect.fnUntraced(function* (algorithm: DkimAlgorithm) {
  const { reads, sql } = yield* Database
  const changes = yield* TransitionWriter
  const feature = yield* FeatureFlag
  const ids = yield* Ids
  const vault = yield* Vault
  const timers = yield* Timers
  const load = loadForClock(reads)
  const { liveOf } = rows(reads)
  type Loaded = NonNullable<Effect.Success<ReturnType<typeof load>>>

  const write = Effect.fnUntraced(function* (
    loaded: Loaded,
    after: Transition,
    { commandId, pair }: Pick<Kept, "commandId" | "pair">,
    key: DkimKey | null,
    now: number,
  ) {
    const { credentials, domain, people, reach, revision, seats, stored: before } = loaded
    const { state } = after
    const { domainId, id: transferId } = state
    const completed = state.status === "completed"
    const { fences, gather } = changes.fenced({
      before,
      after,
      actor: "system",
      commandId,
      now,
      revision,
      reach,
      circumstances: completed ? { key, revoked: revokedFrom(credentials, state) } : {},
      moving: completed ? { domain: domain!, to: { state, key }, credentials } : null,
    })
    const seat = completed ? seats.find(({ workspace }) => workspace.id === state.targetOrgId)! : null
    const recipient = before.state.status === "accepted" ? people.get(state.targetUserId) : undefined
    const all = [
      ...standing(sql, {
        accounts: recipient === undefined ? [] : [recipient],
        ...(seat === null ? {} : { workspaces: [seat.workspace], seats: [seat] }),
      }),
      holds(sql, feature.allowed),
      ...fences,
    ]
    if (!Array.isArrayNonEmpty(all)) return
    const kept = pair === null ? Effect.void : keepPair(sql, vault, pair, { domainId, transferId, now })
    yield* writeFenced(
      sql,
      all,
      gather.pipe(Effect.andThen(kept), Effect.andThen(faultPoint("transfer.clock.written"))),
    )
    yield* faultPoint("transfer.clock.committed")
  })

  const once = Effect.fnUntraced(function* (id: TransferId, kept: Kept) {
    const loaded = yield* load(id, feature.allowed)
    // Deletes the timers of an unknown transfer.
    if (loaded === null) yield* timers.set(id, [])
    const now = yield* Clock.currentTimeMillis
    if (loaded === null || !loaded.allowed) return false
    if (!isDue(loaded.stored.state, now)) return kept.due
    kept.due = true
    const { domain, people, seats, stored: { state } } = loaded
    const recipientActive = people.get(state.targetUserId)?.active ?? false
    const workspaces = [...new Set(seats.map(({ workspace }) => workspace.id))]
    const after = Result.getOrThrow(transition(state, { _tag: "Tick", domain, recipientActive, workspaces }, now))
    const rotates = after.state.status === "completed" && after.state.rotateDkim
    if (rotates && loaded.key === null) kept.pair ??= yield* makePair(algorithm)
    const pair = rotates && loaded.key === null ? kept.pair : null
    yield* write(loaded, after, { ...kept, pair }, rotates ? loaded.key ?? pair : null, now)
    return true
  })

  /** Writes the due transition of a transfer; returns whether its state changed, by this process or another. */
  const settle = Effect.fn("Transfers.settle")(function* (id: TransferId, due = false) {
    const kept: Kept = { commandId: CommandId.make(yield* ids.next), pair: null, due }
    return yield* repeated({ turn: id, finds: true }, once(id, kept))
  })

  /** The same for a state that was read, if it is due. */
  const ifDue = Effect.fnUntraced(function* (state: TransferState | null) {
    return state !== null && isDue(state, yield* Clock.currentTimeMillis) && (yield* settle(state.id, true))
  })

  return {
    ifDue,
    /** The same for a domain's live transfer. */
    domain: Effect.fnUntraced(function* (domainId: DomainId) {
      const live = yield* liveOf(domainId).pipe(Effect.orDie)
      return yield* ifDue(live?.state ?? null)
    }),
    /** The same for a transfer's id. */
    transfer: (id: TransferId) => settle(id),
  }
})
export type Settling = Effect.Success<ReturnType<typeof settling>>
