/** The statement that reads an institution's reviews, its candidates, and what the list shows beside them. */
import type { PgClient } from "@effect/sql-pg"
import type { AccessReviewId, InstitutionId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { Candidate } from "../../../schemas/identity/AccessReview.ts"
import { type Attempted, attemptsOf, type Consumer, type Given, type Stood } from "../../lifecycle/DeliveryStatus.ts"
import { expiredAt } from "./ReviewExpiry.ts"
import { reviewColumns, type ReviewRow } from "./Rows.ts"
import { seenOf } from "./Seen.ts"

export interface ListedRow extends ReviewRow {
  /** The JSON of `Beside`, in a row of its own; null in the rows of reviews. */
  readonly beside: string | null
  readonly access_state: string | null
  readonly current_version: number | null
  readonly sponsor_current: boolean
  readonly membership_ended: boolean
  /** Drift: the product's event state differs from this Access. */
  readonly drift: boolean
  readonly installed_version: string | null
  /** The event of the decision, and its position in the project `queued_in`; null where there is none yet. */
  readonly queued_event_id: string | null
  readonly queued_in: ProjectId | null
  readonly queued_epoch: number | null
  readonly queued_position: bigint | null
  readonly queued_at: Date | null
  /** The position of the Access's current grant Event; null where that is not known. */
  readonly granted_in: ProjectId | null
  readonly granted_epoch: number | null
  readonly granted_position: bigint | null
}

export type CandidateRow = Omit<Candidate, "proposable" | "blocked_by">

/** The rest of the list, read in the same statement as the reviews, so that all of it is of one moment. */
export interface Beside {
  readonly seen: string
  readonly candidates: ReadonlyArray<CandidateRow>
  readonly consumers: ReadonlyArray<Consumer>
  readonly given: ReadonlyArray<Given>
  readonly attempted: ReadonlyArray<Attempted & Stood>
}

const attempts = attemptsOf(
  "(t.project_id, t.epoch, t.position) in (select queued_in, queued_epoch, queued_position from reviews)",
)

/**
 * A page: at most `limit` reviews and `limit` candidates, each after the row with that id; null: from the first. `only`: the
 * review with this id, and no candidate.
 */
export interface ReviewPage {
  readonly limit: number
  readonly afterId: string | null
  readonly afterAccessId: string | null
  readonly only?: AccessReviewId
}

/** SQL of the reviews of a page. */
const reviewsOf = (sql: PgClient.PgClient, institutionId: InstitutionId, page: ReviewPage | null) => {
  const all = sql`select r.* from access_reviews r where r.institution_id = ${institutionId}`
  if (page === null) return all
  if (page.only !== undefined) return sql`${all} and r.id = ${page.only}::uuid`
  const later = page.afterId === null ? sql`` : sql`and (r.proposed_at, r.id) < (
    select c.proposed_at, c.id from access_reviews c
    where c.id = ${page.afterId}::uuid and c.institution_id = ${institutionId})`
  return sql`${all} ${later} order by r.proposed_at desc, r.id desc limit ${page.limit}`
}

/** SQL of the candidates of a page. */
const candidatesOf = (
  sql: PgClient.PgClient,
  institutionId: InstitutionId,
  now: Date,
  page: ReviewPage | null,
) => {
  const later = page === null || page.afterAccessId === null ? sql`` : sql`and a.id > ${page.afterAccessId}`
  return sql`
      select a.id as access_id, a.access_version, a.person_id, a.project_id, a.role, v.created_at as granted_at,
        v.event_id as grant_event_id
      from access a
      join access_versions v on v.access_id = a.id and v.access_version = a.access_version
      where a.institution_id = ${institutionId} and a.state = 'active' and not a.removed
        and not exists (
          select from access_reviews r
          where r.access_id = a.id and r.access_version = a.access_version and r.state in ('proposed', 'approved')
            and not (${expiredAt(sql, now)}))
        ${later} ${page?.only === undefined ? sql`` : sql`and false`}
      ${page === null ? sql`` : sql`order by a.id limit ${page.limit}`}`
}

/**
 * Rows of the list at `now`, newest review first: all, or those of a page. A page has no value of `Seen.ts`, which
 * reads every row of the institution.
 */
export const listedRows = (
  sql: PgClient.PgClient,
  institutionId: InstitutionId,
  now: Date,
  page: ReviewPage | null = null,
) =>
  sql<ListedRow>`
    with chosen as ${sql.literal(page === null ? "not materialized" : "materialized")} (
      ${reviewsOf(sql, institutionId, page)}
    ), sponsors as materialized (
      select distinct m.person_id from institution_memberships m
      join people p on p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
        and not p.auditor
      join institutions i on i.id = m.institution_id and i.status = 'active' and not i.removed
      where m.institution_id = ${institutionId} and m.role = 'sponsor' and m.state = 'active' and not m.removed
        and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)
    ), memberships as materialized (
      select r.person_id, bool_and(m.removed or m.state = 'ended') as ended
      from (select distinct person_id from chosen) r
      left join people p on p.id = r.person_id and p.merged_into is not null
      join institution_memberships m on m.person_id = coalesce(p.merged_into, r.person_id)
        and m.institution_id = ${institutionId}
      group by r.person_id
    ), reviews as materialized (
      select r.*, case when a.removed then 'revoked' else a.state end as access_state,
        a.access_version as current_version, l.installed_version, e.id::text as queued_event_id, e.project_id as queued_in,
        e.epoch as queued_epoch, e.position as queued_position, e.created_at as queued_at, g.project_id as granted_in,
        g.epoch as granted_epoch, g.position as granted_position,
        r.proposed_by in (select person_id from sponsors) as sponsor_current,
        coalesce(m.ended, false) as membership_ended, d.key is not null as drift
      from chosen r
      left join access a on a.id = r.access_id
      left join projects l on l.id = r.project_id
      left join memberships m on m.person_id = r.person_id
      left join lifecycle_told e on e.id = coalesce(r.revocation_event_id, r.approval_event_id)
      left join access_versions v on v.access_id = a.id and v.access_version = a.access_version
      left join lifecycle_told g on g.id = v.event_id
      left join lifecycle_drift d on d.project_id = r.project_id and d.key = 'access/' || r.access_id
    ), candidates as (
      ${candidatesOf(sql, institutionId, now, page)}
    ), consumers as (
      select c.project_id, c.delivered_epoch, c.delivered_position, c.delivered_at, c.acknowledged_epoch,
        c.acknowledged_position, c.acknowledged_at, c.installed_version
      from lifecycle_consumers c
      where c.project_id in (select queued_in from reviews union select granted_in from reviews)
    ), given as (
      select n.project_id, n.epoch, n.position, n.given_at from lifecycle_given n
      where (n.project_id, n.epoch, n.position) in (select queued_in, queued_epoch, queued_position from reviews)
    ), attempted as (
      ${sql.literal(attempts)}
    ), besides as (
      select json_build_object(
        'seen', ${page === null ? sql`(${seenOf(sql, institutionId, now)})` : sql`''`},
        'candidates', (select coalesce(json_agg(c order by c.access_id), '[]') from candidates c),
        'consumers', (select coalesce(json_agg(c), '[]') from consumers c),
        'given', (select coalesce(json_agg(n), '[]') from given n),
        'attempted', (select coalesce(json_agg(n), '[]') from attempted n))::text as beside
    )
    select beside, ${
    sql.literal(reviewColumns)
  }, access_state, current_version, installed_version, queued_event_id, queued_in, queued_epoch,
      queued_position, queued_at, granted_in, granted_epoch, granted_position, sponsor_current, membership_ended,
      drift
    from besides full join reviews r on false
    order by r.proposed_at desc, r.id desc`
