/** Reads an existing transfer, for the commands of its parties and for the mailed link that stops it. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import { counts } from "./DecisionReads.ts"
import { loadParts, type Seat, strongest, transferLoad, type WorkspaceSeat } from "./Load.ts"

/** Loads a transfer, its domain and its parties. */
export const loadForStop = (sql: PgClient.PgClient) => {
  const transfer = transferLoad(sql)
  return (id: TransferId) => transfer(id, null, sql``)
}

/** Loads what `loadForStop` loads, and the caller and the caller's seat in the source workspace. */
export const loadForParty = (sql: PgClient.PgClient) => {
  const { seatsIn } = loadParts(sql)
  const transfer = transferLoad(sql)

  return (id: TransferId, callerId: AccountId) =>
    Effect.map(
      transfer<{ readonly seats: ReadonlyArray<Seat> | null }>(
        id,
        callerId,
        sql`, ${seatsIn(callerId, sql`t.source_org_id::uuid`)}`,
      ),
      (found) => found && { ...found, seat: strongest(found.row.seats ?? []) },
    )
}

/**
 * Loads what `loadForStop` loads, the caller's workspaces (oldest first), and the numbers of the caller's domains and
 * of accepted transfers to the caller. One snapshot, so that a completion counts once.
 */
export const loadForAccept = (sql: PgClient.PgClient) => {
  const { workspaceSeats } = loadParts(sql)
  const transfer = transferLoad(sql)

  return (id: TransferId, callerId: AccountId) =>
    Effect.map(
      transfer<{
        readonly seats: ReadonlyArray<WorkspaceSeat> | null
        readonly owned: number
        readonly coming: number
      }>(
        id,
        callerId,
        sql`, ${workspaceSeats(sql`${callerId}::uuid`)}, ${counts(sql, sql`${callerId}::uuid`)}`,
      ),
      (found) => {
        if (found === null) return null
        const { coming, owned, seats } = found.row
        return { ...found, coming, owned, seats: seats ?? [] }
      },
    )
}
