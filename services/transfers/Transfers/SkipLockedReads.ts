/**
 * The reads of a batch of due transitions: rows are locked in the global order (docs/lock-order.md) without waiting. A
 * row that another transaction has locked is skipped, and its transfer is written later, by itself.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { type Domain, domainColumns, domainOf, type DomainRow } from "./DecisionReads.ts"
import { rows, type Stored } from "./Rows.ts"
import type { TransferState } from "./TransferState.ts"

export interface SkipLockedReads {
  readonly stored: ReadonlyArray<Stored>
  /** The locked domains that are not removed. */
  readonly domains: ReadonlyMap<string, Domain>
  /** Whether the recipient is active and belongs to the chosen workspace. */
  readonly takes: (state: TransferState) => boolean
}

const seatOf = (accountId: AccountId, workspaceId: WorkspaceId | null) => `${accountId} ${workspaceId}`

export const freeRows = (sql: PgClient.PgClient) => {
  const { lockFree } = rows(sql)

  /** Locks the seats of active recipients in their chosen workspaces. */
  const lockSeats = Effect.fnUntraced(function* (accepted: ReadonlyArray<TransferState>) {
    if (accepted.length === 0) return new Set<string>()
    const accounts = yield* sql<{ id: AccountId }>`
      select id::text as id from accounts
      where id = any(${accepted.map(({ targetUserId }) => targetUserId)}::uuid[]) and status = 'active' and not removed
      order by id for share skip locked`
    const workspaces = yield* sql<{ id: WorkspaceId }>`
      select id::text as id from workspaces
      where id = any(${accepted.map(({ targetOrgId }) => targetOrgId ?? "")}::uuid[]) and not removed
      order by id for share skip locked`
    const wanted = accepted.map(({ targetOrgId, targetUserId }) => ({ account: targetUserId, workspace: targetOrgId }))
    const seats = yield* sql<{ account_id: AccountId; workspace_id: WorkspaceId }>`
      select m.account_id::text as account_id, m.workspace_id::text as workspace_id
      from json_to_recordset(${JSON.stringify(wanted)}::json) r(account uuid, workspace uuid)
        join workspace_memberships m on m.account_id = r.account and m.workspace_id = r.workspace
      where m.account_id = any(${accepted.map(({ targetUserId }) => targetUserId)}::uuid[]) and not m.removed
      order by m.id for share of m skip locked`
    const active = new Set(accounts.map(({ id }) => id))
    const known = new Set(workspaces.map(({ id }) => id))
    return new Set(
      seats.flatMap(({ account_id, workspace_id }) =>
        active.has(account_id) && known.has(workspace_id) ? [seatOf(account_id, workspace_id)] : []
      ),
    )
  })

  /** Locks the rows of `read` and of its facts that are free, in the current transaction. */
  return Effect.fnUntraced(function* (read: ReadonlyArray<TransferState>) {
    const seats = yield* lockSeats(read.filter(({ status }) => status === "accepted"))
    const found = yield* sql<DomainRow>`
      select ${sql.literal(domainColumns)} from domains
      where id = any(${read.map(({ domainId }) => domainId)}::uuid[]) and not removed
      order by id for update skip locked`
    const domains = new Map(found.map((row) => [row.id, domainOf(row)]))
    const ids = read.flatMap(({ domainId, id }) => domains.has(domainId) ? [id] : [])
    return {
      stored: yield* lockFree(ids),
      domains,
      takes: ({ targetOrgId, targetUserId }) => seats.has(seatOf(targetUserId, targetOrgId)),
    } satisfies SkipLockedReads
  })
}
