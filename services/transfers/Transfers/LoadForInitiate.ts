/** The load of an offer. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { AccountId, DomainId } from "../../../schemas/BrandedIds.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import { type RateLimit, type RateWindow, windowOf } from "../../platform/security/RateLimits.ts"
import { blockersOf } from "./DecisionReads.ts"
import { type Common, commonOf, loadParts, type Seat, strongest } from "./Load.ts"
import { type Row, storedOf } from "./Rows.ts"

/**
 * Loads a domain and its live transfer; the caller's seat in its workspace; what blocks an offer; the account with the
 * address; the used part of the rate limit.
 */
export const loadForInitiate = (sql: PgClient.PgClient) => {
  const { domain, isHeld, opening, people, seatsIn } = loadParts(sql)

  return Effect.fnUntraced(function* (domainId: DomainId, callerId: AccountId, email: string, limit: RateLimit) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* sql<
      Row & Common & {
        readonly blockers: ReadonlyArray<Blocker> | null
        readonly seats: ReadonlyArray<Seat> | null
        readonly taken: RateWindow
        readonly target_id: AccountId | null
      }
    >`
      with ${opening(domainId, email)}
      select t.*, x.target_id::text as target_id, ${domain(sql`${domainId}::uuid`)}, ${isHeld},
        ${people(sql`${callerId}::uuid, x.owner_id, x.target_id`)}, ${seatsIn(callerId, sql`x.workspace_id`)},
        (select json_agg(b) from (${blockersOf(sql, domainId)}) b) as blockers,
        ${windowOf(sql, limit, now)} as taken
      from x left join t on true`
    const { blockers, seats, taken, target_id: targetId, ...found } = row!
    const of = (kind: Blocker["kind"]) => (blockers ?? []).filter((one) => one.kind === kind)
    return {
      ...commonOf(found),
      live: found.id === null ? null : storedOf(found),
      seat: strongest(seats ?? []),
      targetId,
      taken,
      blockers: { broadcasts: of("broadcast"), scheduledEmails: of("scheduled_email") },
    }
  })
}
