/** The load of a due transition. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { TransferId } from "../../../schemas/BrandedIds.ts"
import type { DkimKey } from "../DkimKeys.ts"
import { type Credential, foreignTo } from "./DomainMove.ts"
import { loadParts, transferLoad, type WorkspaceSeat } from "./Load.ts"

/**
 * Loads a transfer, its domain and its parties; the recipient's workspaces; the SMTP credentials that the move revokes;
 * the transfer's DKIM key; the value of `allowed`.
 */
export const loadForClock = (sql: PgClient.PgClient) => {
  const { workspaceSeats } = loadParts(sql)
  const transfer = transferLoad(sql)

  return (id: TransferId, allowed: Statement.Fragment) =>
    Effect.map(
      transfer<{
        readonly allowed: boolean
        readonly credentials: ReadonlyArray<Credential>
        readonly key: DkimKey | null
        readonly seats: ReadonlyArray<WorkspaceSeat> | null
      }>(
        id,
        null,
        sql`, ${workspaceSeats(sql`t.target_user_id::uuid`)}, ${allowed} as allowed,
          ${foreignTo(sql, sql`t.domain_id::uuid`, sql`t.target_user_id::uuid`)} as credentials,
          (select row_to_json(k) from (
            select algorithm, selector, public_key as "publicKey" from dkim_keys
            where domain_id = t.domain_id::uuid and transfer_id = t.id::uuid) k) as key`,
      ),
      (found) => {
        if (found === null) return null
        const { allowed, credentials, key, seats } = found.row
        return { ...found, allowed, credentials, key, seats: seats ?? [] }
      },
    )
}
