/** The items of campaigns that wait for a person: as an active owner of the item's project, or as its delegate. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { CampaignId, PersonId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { heldIn } from "../../people/Roles.ts"
import { idIn } from "../../platform/database/IdIn.ts"
import { namesOf } from "../Requests/Filing.ts"
import type { Page } from "./CampaignReads.ts"

type Row = Omit<Wire.OwnCampaignItem, "deadline" | "granted_at"> & {
  readonly deadline: Date
  readonly granted_at: Date
}

/** SQL of the open items `t` that the person may answer now, with their campaign `c`, Access `a` and project `o`. */
const waiting = (sql: PgClient.PgClient, personId: PersonId, now: Date) =>
  sql`(
      select t.* from project_owners w
      join people p on p.id = w.person_id and p.status = 'active' and not p.removed and p.merged_into is null
        and not p.auditor
      join campaign_items t on t.project_id = w.project_id and t.outcome = 'open' and not t.over
      where w.person_id = ${personId} and w.active and not w.removed
      union
      select t.* from campaign_items t
      where t.delegate in ${namesOf(sql, personId)} and t.outcome = 'open' and not t.over and exists (
        select from (${heldIn(sql, personId, sql`t.institution_id`, now)}) h where h.effective)
    ) t
    join campaigns c on c.id = t.campaign_id and c.closed_at is null and c.deadline > ${now}
    join access a on a.id = t.access_id and a.access_version = t.access_version and a.state = 'active' and not a.removed
    join projects o on o.id = t.project_id and o.institution_id = t.institution_id and not o.removed`

export const waitingItems = (sql: PgClient.PgClient) => {
  const mine = Effect.fn("Campaigns.mine")(function* (
    personId: PersonId,
    { afterId, limit }: Page,
  ): Effect.fn.Return<Wire.OwnCampaignItems, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* sql<Row>`
      select t.id::text as item_id, t.campaign_id::text as campaign_id, c.name as campaign_name, c.deadline,
        t.institution_id, n.name as institution_name, t.access_id, t.access_version, t.project_id,
        o.name as project_name, t.person_id, h.display_name, t.role, v.created_at as granted_at,
        t.delegate as delegate_person_id
      from ${waiting(sql, personId, now)}
      join institutions n on n.id = t.institution_id
      join access_versions v on v.access_id = t.access_id and v.access_version = t.access_version
      left join people h on h.id = t.person_id and not h.removed
      where canonical_person(t.person_id) <> ${personId} and (${afterId}::uuid is null or t.id > ${afterId}::uuid)
      order by t.id limit ${limit}`
    return {
      items: rows.map((row) => ({
        ...row,
        deadline: row.deadline.toISOString(),
        granted_at: row.granted_at.toISOString(),
      })),
    }
  })

  /** Of these campaigns the ones in which an item waits for the person. */
  const among = Effect.fnUntraced(function* (
    personId: PersonId,
    ids: ReadonlyArray<string>,
    now: Date,
  ): Effect.fn.Return<ReadonlyArray<CampaignId>, SqlError.SqlError> {
    if (ids.length === 0) return []
    const rows = yield* sql<{ id: CampaignId }>`
      select distinct c.id::text as id from ${waiting(sql, personId, now)}
      where ${idIn(sql, "c.id", "uuid", ids)} and canonical_person(t.person_id) <> ${personId}`
    return rows.map(({ id }) => id)
  })

  return { mine, among }
}
