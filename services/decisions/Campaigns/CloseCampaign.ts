/** An administrator closes a campaign before its deadline: what is not answered by then stays unanswered. */
import { Effect } from "effect"
import type { CampaignId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { reading } from "./CampaignReads.ts"
import { lockingCampaign } from "./LockCampaign.ts"

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
  const lock = yield* lockingCampaign
  const { detail } = reading(sql)

  return Effect.fn("Campaigns.close")(function* ({ campaignId, institutionId, personId, reason }: Closing) {
    yield* needs(yield* roles.inInstitution(personId, institutionId), "administrator")
    const { now } = yield* lock(institutionId, campaignId)
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
