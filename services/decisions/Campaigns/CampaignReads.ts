/** Campaigns and their items as a Sponsor, an administrator, an operator or an auditor reads them. */
import { Clock, Effect } from "effect"
import type { CampaignId, CampaignItemId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { decisionsReader } from "../../people/InstitutionReader.ts"
import { Database } from "../../platform/database/Database.ts"
import {
  campaignColumns,
  campaignOf,
  type CampaignRow,
  itemOf,
  type ItemRow,
  itemRows,
  stateIn,
} from "./CampaignRows.ts"

export interface Page {
  readonly limit: number
  readonly afterId: string | null
}

export interface ItemPage extends Page {
  readonly state?: string | undefined
}

/** Reads one campaign or item, by this client: in a transaction it sees what the transaction has written. */
export const reading = (sql: Database["Service"]["sql"]) => {
  const detail = Effect.fnUntraced(function* (institutionId: InstitutionId, campaignId: CampaignId) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* sql<CampaignRow & { readonly items: Wire.CampaignDetail["items"] }>`
      select ${sql.literal(campaignColumns)}, (
        select json_build_object('total', count(*), 'open', count(*) filter (where state = 'open'),
          'confirmed', count(*) filter (where state = 'confirmed'),
          'proposed_for_revocation', count(*) filter (where state = 'proposed_for_revocation'),
          'withdrawn', count(*) filter (where state = 'withdrawn'),
          'unanswered', count(*) filter (where state = 'unanswered'))
        from (
          select ${stateIn(sql, new Date(now))} as state from campaign_items i
          left join access_versions s on s.access_id = i.access_id and s.access_version = i.access_version + 1
          where i.campaign_id = c.id
        ) states
      ) as items
      from campaigns c
      where c.id = ${isUuid(campaignId) ? campaignId : null}::uuid and c.institution_id = ${institutionId}`
    return row === undefined ? yield* new NotFound() : { ...campaignOf(row, now), items: row.items }
  })

  const item = Effect.fnUntraced(function* (itemId: CampaignItemId) {
    const [row] = yield* sql<ItemRow>`${itemRows(sql)} where i.id = ${itemId}::uuid`
    return itemOf(row!, yield* Clock.currentTimeMillis)
  })

  return { detail, item }
}

export const campaignReads = Effect.gen(function* () {
  const { reads } = yield* Database
  const mayRead = decisionsReader(reads)
  const { detail } = reading(reads)

  const list = Effect.fn("Campaigns.list")(
    function* (personId: PersonId, institutionId: InstitutionId, { afterId, limit }: Page) {
      yield* mayRead(personId, institutionId)
      const now = yield* Clock.currentTimeMillis
      const rows = yield* reads<CampaignRow>`
        select ${reads.literal(campaignColumns)} from campaigns c
        where c.institution_id = ${institutionId} and (${afterId}::uuid is null or c.id < ${afterId}::uuid)
        order by c.id desc limit ${limit}`
      return { items: rows.map((row) => campaignOf(row, now)) }
    },
  )

  const read = Effect.fn("Campaigns.read")(
    function* (personId: PersonId, institutionId: InstitutionId, campaignId: CampaignId) {
      yield* mayRead(personId, institutionId)
      return yield* detail(institutionId, campaignId)
    },
  )

  const items = Effect.fn("Campaigns.items")(
    function* (
      personId: PersonId,
      institutionId: InstitutionId,
      campaignId: CampaignId,
      { afterId, limit, state }: ItemPage,
    ) {
      yield* mayRead(personId, institutionId)
      const id = isUuid(campaignId) ? campaignId : null
      const [there] = yield* reads`
        select from campaigns where id = ${id}::uuid and institution_id = ${institutionId}`
      if (there === undefined) return yield* new NotFound()
      const now = yield* Clock.currentTimeMillis
      const wanted = state === undefined ? reads`true` : reads`${stateIn(reads, new Date(now))} = ${state}`
      const rows = yield* reads<ItemRow>`${itemRows(reads)}
        where i.campaign_id = ${id}::uuid and (${afterId}::uuid is null or i.id > ${afterId}::uuid) and ${wanted}
        order by i.id limit ${limit}`
      return { items: rows.map((row) => itemOf(row, now)) }
    },
  )

  return { list, read, items }
})
