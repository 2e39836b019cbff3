/** An administrator moves the deadline of an open campaign, to an earlier or a later time. What was answered stays. */
import { Effect } from "effect"
import type { CampaignId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { recall } from "../../requests/SignatureCalls.ts"
import { reading } from "./CampaignReads.ts"
import { deadlineOf } from "./Deadline.ts"
import { lockingCampaign } from "./LockCampaign.ts"

export interface Rescheduling extends Wire.CampaignReschedule {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly campaignId: CampaignId
}

export const rescheduling = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const roles = yield* Roles
  const lock = yield* lockingCampaign
  const { detail } = reading(sql)

  return Effect.fn("Campaigns.reschedule")(function* (asked: Rescheduling) {
    const { campaignId, institutionId, personId, reason } = asked
    yield* needs(yield* roles.inInstitution(personId, institutionId), "administrator")
    const { deadline: before, now, opened_at } = yield* lock(institutionId, campaignId)
    const deadline = yield* deadlineOf(asked.deadline, opened_at.getTime(), now)
    if (deadline.getTime() !== before.getTime()) {
      yield* sql`update campaigns set deadline = ${deadline} where id = ${campaignId}::uuid`
      // Those who answer are told again before the new end. The call comes first: it stops one that has begun by the
      // deadline of before (CallSigners.ts), or waits for its notices.
      yield* recall(sql, { review_id: campaignId, kind: "campaign" }, new Date(now))
      yield* sql`delete from person_notices where subject_id = ${campaignId}::uuid and kind = 'signature.closing'`
      yield* audit.append({
        action: "campaign.rescheduled",
        actor: `person:${personId}`,
        subject: `campaign:${campaignId}`,
        outcome: "done",
        decision: true,
        details: {
          institution: institutionId,
          deadline: deadline.toISOString(),
          before: before.toISOString(),
          reason,
        },
      })
    }
    return yield* detail(institutionId, campaignId)
  })
})
