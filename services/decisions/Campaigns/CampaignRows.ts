/** The rows of campaigns and their items, and their views. */
import type { PgClient } from "@effect/sql-pg"
import type {
  AccessId,
  CampaignId,
  CampaignItemId,
  InstitutionId,
  PersonId,
  PolicyReviewId,
  ProjectId,
  RequestId,
} from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { type RequestState, stateAt } from "../../requests/RequestRows.ts"
import { type Around, isOver, type Outcome, stateOf } from "./CampaignItem.ts"

export interface CampaignRow {
  readonly id: CampaignId
  readonly institution_id: InstitutionId
  readonly name: string
  readonly reason: string
  readonly opened_by: PersonId
  readonly opened_at: Date
  readonly deadline: Date
  readonly closed_at: Date | null
  readonly closed_by: PersonId | null
  readonly close_reason: string | null
}

/** SQL of the columns of a `CampaignRow`, of a campaign `c`. */
export const campaignColumns =
  `c.id::text as id, c.institution_id, c.name, c.reason, c.opened_by, c.opened_at, c.deadline,
  c.closed_at, c.closed_by, c.close_reason`

export interface ItemRow extends Pick<CampaignRow, "deadline" | "closed_at"> {
  readonly id: CampaignItemId
  readonly campaign_id: CampaignId
  readonly access_id: AccessId
  readonly access_version: number
  readonly project_id: ProjectId
  readonly person_id: PersonId
  readonly display_name: string | null
  readonly role: string
  readonly outcome: Outcome
  readonly delegate: PersonId | null
  readonly answered_by: PersonId | null
  readonly answered_at: Date | null
  readonly reason: string | null
  readonly confirmation_id: string | null
  readonly superseded_at: Date | null
  readonly request_id: RequestId | null
  readonly review_id: PolicyReviewId | null
  readonly request_state: RequestState
  readonly request_expires_at: Date | null
}

/** SQL of the `ItemRow`s of items `i` of campaigns `c`; their conditions follow. */
export const itemRows = (sql: PgClient.PgClient) =>
  sql.literal(`
    select i.id::text as id, i.campaign_id::text as campaign_id, i.access_id, i.access_version, i.project_id, i.person_id,
      p.display_name, i.role, i.outcome, i.delegate, i.answered_by, i.answered_at, i.reason,
      i.confirmation_id::text as confirmation_id, s.created_at as superseded_at, c.deadline, c.closed_at,
      i.request_id::text as request_id, r.state as request_state, r.expires_at as request_expires_at, (
        select v.id::text from policy_reviews v where v.request_id = i.request_id
        order by v.state <> 'open', v.id desc limit 1) as review_id
    from campaign_items i join campaigns c on c.id = i.campaign_id
    left join access_versions s on s.access_id = i.access_id and s.access_version = i.access_version + 1
    left join people p on p.id = i.person_id and not p.removed
    left join requests r on r.id = i.request_id`)

/** SQL of `stateOf`, of an item `i` of a campaign `c` whose version was superseded by `s`. */
export const stateIn = (sql: PgClient.PgClient, now: Date) =>
  sql`case when i.outcome <> 'open' then i.outcome
    when s.created_at <= least(c.deadline, c.closed_at, ${now}) then 'withdrawn'
    when least(c.deadline, c.closed_at) <= ${now} then 'unanswered' else 'open' end`

export const aroundOf = (
  { closed_at, deadline, superseded_at }: Pick<ItemRow, "closed_at" | "deadline" | "superseded_at">,
  now: number,
): Around => ({
  now,
  deadline: deadline.getTime(),
  closedAt: closed_at?.getTime() ?? null,
  supersededAt: superseded_at?.getTime() ?? null,
})

export const campaignOf = (row: CampaignRow, now: number): Wire.Campaign => ({
  campaign_id: row.id,
  institution_id: row.institution_id,
  name: row.name,
  reason: row.reason,
  state: isOver(aroundOf({ ...row, superseded_at: null }, now)) ? "closed" : "open",
  opened_by: row.opened_by,
  opened_at: row.opened_at.toISOString(),
  deadline: row.deadline.toISOString(),
  closed: row.closed_at === null
    ? null
    : { person_id: row.closed_by!, at: row.closed_at.toISOString(), reason: row.close_reason! },
})

const revocationOf = (row: ItemRow, now: number): Wire.CampaignItem["revocation"] => {
  if (row.request_id === null) return null
  const { request_expires_at: expires_at, request_state: state } = row
  return {
    request_id: row.request_id,
    review_id: row.review_id,
    state: stateAt({ state, expires_at, effective_at: null, kind: "access_revocation" }, now) as NonNullable<
      Wire.CampaignItem["revocation"]
    >["state"],
  }
}

export const itemOf = (row: ItemRow, now: number): Wire.CampaignItem => ({
  item_id: row.id,
  campaign_id: row.campaign_id,
  access_id: row.access_id,
  access_version: row.access_version,
  project_id: row.project_id,
  person_id: row.person_id,
  display_name: row.display_name,
  role: row.role,
  state: stateOf(row.outcome, aroundOf(row, now)),
  delegate_person_id: row.delegate,
  answer: row.answered_by === null
    ? null
    : { person_id: row.answered_by, at: row.answered_at!.toISOString(), reason: row.reason! },
  confirmation_id: row.confirmation_id,
  revocation: revocationOf(row, now),
})
