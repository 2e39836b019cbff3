/**
 * Carries out a signed proposal to revoke an Access, by the one way in which an Access is revoked here: its end is brought
 * forward to now, and its timer revokes it (services/access/AccessEnds.ts). An Access that is revoked already, or whose end
 * has come, is as the proposal asks; one with another version, or of another institution by now,
 * was not what was signed. The signed version stands beside the end: a version that the directory writes before the timer
 * fires is not revoked, and has the end of before.
 */
import { Clock, Effect } from "effect"
import { AccessId } from "../../../schemas/BrandedIds.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { aggregateOf, newEnds, presentEnd } from "../../access/AccessEndRows.ts"
import { endedBy, timersOf } from "../../access/AccessTerm.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, load, one } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { write } from "../../platform/database/UnitOfWork.ts"
import { Ids } from "../../platform/Ids.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { revocationIn } from "./RequestViews.ts"

/** All null where the Access is not the institution's. */
interface Loaded {
  readonly active: boolean | null
  readonly version: number
  readonly ends_at: Date | null
}

const superseded = (detail: string) => new InvalidState({ state: "superseded", allowed: ["active"], detail })

export const revokingAccess = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const timers = yield* Timers
  const evidence = newEnds(sql)

  return Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const { access_id: accessId, access_version } = revocationIn(request)
    const now = new Date(yield* Clock.currentTimeMillis)
    const found = yield* load<Loaded>(
      sql,
      sql`select state = 'active' and not removed as active, access_version as version,
          ${sql.literal(presentEnd)} as ends_at from access
        where id = ${accessId} and institution_id = ${request.institution_id}`,
    )
    const approved = { state: "approved", resultId: accessId } as const
    if (found.active === null) return yield* superseded("The Access is another institution's by now.")
    if (found.active && found.version !== access_version) {
      return yield* superseded(
        `The Access has version ${found.version} by now, and the proposal is about version ${access_version}.`,
      )
    }
    const term = { active: found.active, endsAt: found.ends_at?.getTime() ?? null }
    const next = endedBy(term, now.getTime())
    if (!next.active) return approved
    yield* fence(
      sql,
      one((earlier) =>
        sql`update access set ends_at = ${new Date(next.endsAt!)}, revision = revision + 1,
            ends_version = ${next === term ? sql`ends_version` : access_version},
            ends_before = ${next === term ? sql`ends_before` : found.ends_at}
          where id = ${accessId} and institution_id = ${request.institution_id} and state = 'active' and not removed
            and access_version = ${access_version} and ${
          sql.literal(presentEnd)
        } is not distinct from ${found.ends_at} and ${earlier}
          returning 1`
      ),
    )
    // An end that is over, or comes before, stays: the fence holds that it is still so.
    if (next === term) return approved
    yield* write(sql, evidence, [{
      id: yield* ids.next,
      access_id: AccessId.make(accessId),
      ends_at: now.toISOString(),
      set_at: now.toISOString(),
      made_by: request.author,
      approved_by: approvedBy,
      reason: request.reason,
      request_id: request.id,
      access_version,
    }])
    yield* timers.set(aggregateOf(accessId), timersOf(next))
    return approved
  })
})
