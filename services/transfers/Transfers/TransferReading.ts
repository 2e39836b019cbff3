/** One transfer, as its parties read it. A transition that is due happens first, as it does before a command. */
import { Clock, Effect } from "effect"
import type { AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import type { Settling } from "./DueTransition.ts"
import { rows } from "./Rows.ts"
import { type TransferState, viewOf } from "./TransferState.ts"

export const transferReading = Effect.fnUntraced(function* (settle: Settling) {
  const { reads } = yield* Database
  const { byId } = rows(reads)

  /** Whether the account is a party, or belongs to the workspace that the domain was in. */
  const sees = Effect.fnUntraced(function* (accountId: AccountId, state: TransferState) {
    const { initiatedBy, sourceOrgId, sourceUserId, targetUserId } = state
    if ([sourceUserId, initiatedBy, targetUserId].includes(accountId)) return true
    const seats = yield* reads`
      select from workspace_memberships
      where account_id = ${accountId}::uuid and workspace_id = ${sourceOrgId}::uuid and not removed limit 1`
    return seats.length > 0
  }, Effect.orDie)

  return Effect.fn("Transfers.read")(function* (accountId: AccountId, transferId: TransferId) {
    const found = (yield* byId(transferId).pipe(Effect.orDie))?.state ?? null
    if (found === null || !(yield* sees(accountId, found))) return yield* new TransferNotFound()
    const moved = yield* settle.ifDue(found)
    const state = moved ? (yield* byId(transferId).pipe(Effect.orDie))?.state ?? found : found
    return viewOf(state, yield* Clock.currentTimeMillis)
  })
})
