/**
 * Takes the items without an answer of a campaign that has ended out of what waits: they would stand in the indexes of open
 * items for ever, and be read for each page of what waits for a person. What an item is, is judged by time all the same
 * (CampaignItem.ts).
 */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"

/** A process whose clock is late may still take an answer shortly after the end. */
const graceMillis = 60_000

/** Ends one campaign at a time, with its items (5,000 at most); returns how many. Any number of processes may run it. */
export const endCampaigns = Effect.gen(function* () {
  const { sql } = yield* Database
  const before = new Date((yield* Clock.currentTimeMillis) - graceMillis)
  for (let ended = 0;; ended++) {
    const rows = yield* sql`
      with one as materialized (
        select id from campaigns where not ended and least(deadline, closed_at) <= ${before}
        order by least(deadline, closed_at) limit 1 for update skip locked
      ), items as (
        update campaign_items i set over = true from one
        where i.campaign_id = one.id and i.outcome = 'open' and not i.over
      )
      update campaigns c set ended = true from one where c.id = one.id returning 1`
    if (rows.length === 0) return ended
  }
}).pipe(Effect.withSpan("Campaigns.end"))
