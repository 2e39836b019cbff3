/**
 * An administrator, or an owner of the project, lets a member of the institution answer an item beside the owners; or
 * takes that back. Never a person whose own Access it is, as who delegates or as the delegate.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { notOwnAccess } from "../../access/AnswerableAccess.ts"
import { heldIn, needs, owns, type ProjectStanding } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { reading } from "./CampaignReads.ts"
import { lockingItem, type OnItem } from "./LockItem.ts"

export interface Delegating extends OnItem, Pick<Wire.CampaignDelegation, "reason"> {
  /** Null: no delegate any more. */
  readonly delegate: PersonId | null
}

const mayDelegate = (standing: ProjectStanding) =>
  standing.owner || standing.institution === null ? owns(standing) : needs(standing.institution, "administrator")

export const delegating = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const lock = yield* lockingItem
  const { item } = reading(sql)

  /** The canonical id of a member of any role that is effective now. */
  const memberIn = Effect.fnUntraced(function* ({ delegate, institutionId }: Delegating, holder: PersonId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [found] = yield* sql<{ id: PersonId; own: boolean; member: boolean }>`
      select k.id, k.id = canonical_person(${holder}) as own, exists (
          select from (${heldIn(sql, delegate!, sql`${institutionId}`, now)}) h where h.effective) as member
      from people p join people k on k.id = coalesce(p.merged_into, p.id) where p.id = ${delegate}`
    if (found?.own === true) return yield* notOwnAccess()
    return found?.member === true ? found.id : yield* new NotFound()
  })

  return Effect.fn("Campaigns.delegate")(function* (asked: Delegating) {
    const { campaignId, institutionId, itemId, personId, reason } = asked
    const { item: found } = yield* lock(asked, mayDelegate)
    const delegate = asked.delegate === null ? null : yield* memberIn(asked, found.person_id)
    yield* sql`update campaign_items set delegate = ${delegate} where id = ${itemId}::uuid`
    yield* audit.append({
      action: "campaign.delegated",
      actor: `person:${personId}`,
      subject: `campaign:${campaignId}`,
      outcome: "done",
      decision: true,
      details: { institution: institutionId, access: found.access_id, delegate, reason },
    })
    return yield* item(itemId)
  })
})
