/** Locks a campaign that is open, in the current transaction: waits for answers that have begun, and lets none begin. */
import { Clock, Effect } from "effect"
import type { CampaignId, InstitutionId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Database } from "../../platform/database/Database.ts"
import { isOver } from "./CampaignItem.ts"
import { aroundOf, type CampaignRow } from "./CampaignRows.ts"

export const lockingCampaign = Effect.gen(function* () {
  const { sql } = yield* Database

  return Effect.fnUntraced(function* (institutionId: InstitutionId, campaignId: CampaignId) {
    const [row] = yield* sql<Pick<CampaignRow, "closed_at" | "deadline" | "opened_at"> & { readonly ended: boolean }>`
      select closed_at, deadline, opened_at, ended from campaigns
      where id = ${isUuid(campaignId) ? campaignId : null}::uuid and institution_id = ${institutionId} for update`
    if (row === undefined) return yield* new NotFound()
    // Of after the lock: what was answered was answered before.
    const now = yield* Clock.currentTimeMillis
    // A process whose clock is ahead of this one's may have ended it (EndedCampaigns.ts).
    return row.ended || isOver(aroundOf({ ...row, superseded_at: null }, now))
      ? yield* new InvalidState({ state: "closed", allowed: ["open"] })
      : { ...row, now }
  })
})
