/** An administrator closes a campaign before its deadline: what is not answered by then stays unanswered. */
import { Clock, Effect } from "effect"
import type { CampaignId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { isOver } from "./CampaignItem.ts"
import { reading } from "./CampaignReads.ts"
import { aroundOf, type CampaignRow } from "./CampaignRows.ts"

export interface Closing {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly campaignId: CampaignId
  readonly reason: string
}

export const closing = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const roles = yield* Roles
  const { detail } = reading(sql)

  return Effect.fn("Campaigns.close")(function* ({ campaignId, institutionId, personId, reason }: Closing) {
    yield* needs(yield* roles.inInstitution(personId, institutionId), "administrator")
    // Waits for answers that have begun, so that none commits after the close.
    const [row] = yield* sql<Pick<CampaignRow, "closed_at" | "deadline">>`
      select closed_at, deadline from campaigns
      where id = ${isUuid(campaignId) ? campaignId : null}::uuid and institution_id = ${institutionId} for update`
    if (row === undefined) return yield* new NotFound()
    const now = yield* Clock.currentTimeMillis
    if (isOver(aroundOf({ ...row, superseded_at: null }, now))) {
      return yield* new InvalidState({ state: "closed", allowed: ["open"] })
    }
    yield* sql`
      update campaigns set closed_at = ${new Date(now)}, closed_by = ${personId}, close_reason = ${reason}
      where id = ${campaignId}::uuid`
    yield* audit.append({
      action: "campaign.closed",
      actor: `person:${personId}`,
      subject: `campaign:${campaignId}`,
      outcome: "done",
      decision: true,
      details: { institution: institutionId },
    })
    return yield* detail(institutionId, campaignId)
  })
})
