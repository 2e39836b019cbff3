/** The load of an administrator's force. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId, DomainId } from "../../../schemas/BrandedIds.ts"
import { type Credential, foreignTo } from "./DomainMove.ts"
import { type Common, commonOf, loadParts, type WorkspaceSeat } from "./Load.ts"
import { type Row, storedOf } from "./Rows.ts"

/**
 * Loads a domain and its live transfer; the account with the address, with its workspaces; the SMTP credentials that the
 * move revokes.
 */
export const loadForForce = (sql: PgClient.PgClient) => {
  const { domain, isHeld, opening, people, workspaceSeats } = loadParts(sql)

  return Effect.fnUntraced(function* (domainId: DomainId, callerId: AccountId, email: string) {
    const [row] = yield* sql<
      Row & Common & {
        readonly credentials: ReadonlyArray<Credential>
        readonly seats: ReadonlyArray<WorkspaceSeat> | null
        readonly target_id: AccountId | null
      }
    >`
      with ${opening(domainId, email)}
      select t.*, x.target_id::text as target_id, ${domain(sql`${domainId}::uuid`)}, ${isHeld},
        ${
      people(sql`${callerId}::uuid, x.owner_id, x.target_id, t.source_user_id::uuid, t.initiated_by::uuid,
          t.target_user_id::uuid`)
    }, ${workspaceSeats(sql`x.target_id`)}, ${foreignTo(sql, sql`${domainId}::uuid`, sql`x.target_id`)} as credentials
      from x left join t on true`
    const { credentials, seats, target_id: targetId, ...found } = row!
    return {
      ...commonOf(found),
      credentials,
      targetId,
      seats: seats ?? [],
      live: found.id === null ? null : storedOf(found),
    }
  })
}
