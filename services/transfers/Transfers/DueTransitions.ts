/**
 * Writes the due transitions of hundreds of transfers in one transaction with a few statements.
 *
 * The rules are those for one transfer: the same facts, locked in the same order, the same transition, the same
 * writers. Left out, and written one by one afterwards: transfers with a row that another transaction has locked, with
 * a recipient who is disabled or no longer in the chosen workspace, or without their DKIM key (an older version
 * accepted them; generating a key takes 100 ms, too long for a transaction). A transaction that fails is repeated in
 * halves, down to the one transfer that causes the failure, which then fails alone.
 */
import { Cause, Clock, Effect, Result } from "effect"
import { SqlError } from "effect/sql"
import { CommandId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { runOnce } from "../../platform/database/UnitOfWork.ts"
import { Ids } from "../../platform/Ids.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import { keysOf } from "../DkimKeys.ts"
import { move, revoke, revokedFrom } from "./DomainMove.ts"
import { FeatureFlag } from "./FeatureFlag.ts"
import { freeRows } from "./SkipLockedReads.ts"
import { rows, type Stored } from "./Rows.ts"
import type { Settling } from "./DueTransition.ts"
import { isDue, type TransferState } from "./TransferState.ts"
import type { Transition } from "./TransferCommands.ts"
import { transition } from "./TransferTransition.ts"

/** `unmoved`: not due, or left for a later call. */
export type Settled = "moved" | "unmoved" | "failed"

/** Transfers written one by one: how many at a time, and at most per call; the rest are left for a later call. */
const aloneAtOnce = 6
const aloneAtMost = 48

interface Decided {
  readonly before: Stored
  readonly after: Transition
}

/** A lost connection or an interruption: halving the batch would not find a cause. */
const isOutage = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return Cause.hasInterruptsOnly(cause) || SqlError.isSqlError(error) && error.reason._tag === "ConnectionError"
}

const rotates = ({ rotateDkim, status }: TransferState) => status === "accepted" && rotateDkim

export const settlingMany = Effect.fnUntraced(function* (settle: Settling) {
  const database = yield* Database
  const { sql } = database
  const moving = { sql, outbox: yield* Outbox }
  const changes = yield* TransitionWriter
  const feature = yield* FeatureFlag
  const ids = yield* Ids
  const lockFree = freeRows(sql)
  const { byIds } = rows(sql)

  /** One transaction; returns the ids of the transfers that changed. */
  const together = Effect.fnUntraced(
    function* (read: ReadonlyArray<TransferState>) {
      const { domains, stored, takes } = yield* lockFree(read)
      if (stored.length === 0 || !(yield* feature.on)) return []
      const keys = yield* keysOf(sql, stored.flatMap(({ state }) => rotates(state) ? [state] : []))
      const now = yield* Clock.currentTimeMillis
      const decided = stored.flatMap((before): ReadonlyArray<Decided> => {
        const { state } = before
        if (state.status === "accepted" && !takes(state) || rotates(state) && !keys.has(state.id)) return []
        const workspaces = state.targetOrgId === null ? [] : [state.targetOrgId]
        const domain = domains.get(state.domainId) ?? null
        const after = Result.getOrThrow(
          transition(state, { _tag: "Tick", domain, recipientActive: true, workspaces }, now),
        )
        return after.events.length === 0 ? [] : [{ before, after }]
      })
      const completed = decided.flatMap(({ after: { state } }) => state.status === "completed" ? [state] : [])
      const keyFor = ({ id, rotateDkim }: TransferState) => rotateDkim ? keys.get(id) ?? null : null
      const revoked = yield* revoke(sql, completed, now)
      const commandIds = yield* ids.batch(decided.length)
      const notices = yield* changes.write(...decided.map(({ after, before }, i) => ({
        before,
        after,
        actor: "system",
        commandId: CommandId.make(commandIds[i]!),
        revision: domains.get(before.state.domainId)?.revision ?? null,
        circumstances: {
          revoked: revokedFrom(revoked, before.state),
          key: after.state.status === "completed" ? keyFor(after.state) : null,
        },
        now,
      })))
      yield* move(moving, completed.map((state) => ({ state, key: keyFor(state) })), revoked, now)
      yield* changes.tell(notices)
      return decided.map(({ before }) => before.state.id)
    },
    (decisions) => Effect.provideService(runOnce(decisions, { faults: "transfer.clock" }), Database, database),
  )

  const halving = (read: ReadonlyArray<TransferState>): Effect.Effect<ReadonlyArray<TransferId>, SqlError.SqlError> =>
    read.length < 2 ? Effect.succeed([]) : Effect.catchCause(together(read), (cause) => {
      if (isOutage(cause)) return Effect.failCause(cause as Cause.Cause<SqlError.SqlError>)
      const middle = read.length >> 1
      return Effect.zipWith(halving(read.slice(0, middle)), halving(read.slice(middle)), (a, b) => [...a, ...b])
    })

  const alone = (id: TransferId): Effect.Effect<readonly [TransferId, Settled]> =>
    settle.transfer(id).pipe(
      Effect.map((moved) => [id, moved ? "moved" : "unmoved"] as const),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.as(Effect.logWarning(`the due transition of transfer ${id} failed`, cause), [id, "failed"] as const)
      ),
    )

  return Effect.fn("Transfers.settleMany")(function* (transferIds: ReadonlyArray<TransferId>) {
    const now = yield* Clock.currentTimeMillis
    const read = (yield* byIds(transferIds)).map(({ state }) => state)
    const due = read.filter((state) => isDue(state, now))
    const moved = yield* halving(due)
    const idle = new Set(read.flatMap((state) => isDue(state, now) ? [] : [state.id]))
    const settled = new Map<string, Settled>(transferIds.map((id) => [id, "unmoved"]))
    for (const id of moved) settled.set(id, "moved")
    const left = transferIds.filter((id) => settled.get(id) === "unmoved" && !idle.has(id)).slice(0, aloneAtMost)
    for (const [id, how] of yield* Effect.forEach(left, alone, { concurrency: aloneAtOnce })) settled.set(id, how)
    return settled as ReadonlyMap<string, Settled>
  }, Effect.orDie)
})
