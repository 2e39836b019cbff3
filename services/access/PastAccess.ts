/**
 * The Access of an institution at a past moment, from the versions of each Access, which are kept for ever and never
 * change, and from the dates of the reviews.
 */
import type { PgClient } from "@effect/sql-pg"
import type { InstitutionId } from "../../schemas/BrandedIds.ts"
import { countsFor } from "./AccessEndRows.ts"
import { effectiveReviewAt } from "./AccessReviews/ReviewExpiry.ts"

/** A page of the Access that was active at `at`, ascending after the Access `afterId`. */
export interface PastPage {
  readonly at: Date
  readonly limit: number
  readonly afterId: string | null
}

/**
 * SQL of the page: for each Access the version in force at that moment, if that version grants access. Each Access is
 * looked up once, its newest version first: to ask of each version whether a newer one was in force read 29,000 blocks
 * for 100 Accesses of 100 versions.
 */
export const pastAccess = (
  sql: PgClient.PgClient,
  institutionId: InstitutionId,
  { afterId, at, limit }: PastPage,
) =>
  sql`
    select v.access_id, v.access_version, v.project_id, v.person_id, p.display_name, v.role, v.state,
      v.created_at as granted_at, (
        select case when n.ends_at > ${at} then n.ends_at end from access_ends n
        where n.access_id = v.access_id and n.set_at <= ${at} and ${countsFor(sql, "v.access_version")}
        order by n.id desc limit 1
      ) as ends_at, v.event_id::text as grant_event_id, r.review_id, r.review_state
    from (
      select v.* from (
        select distinct access_id from access_versions
        where institution_id = ${institutionId} and access_id > ${afterId ?? ""}
        order by access_id
      ) a cross join lateral (
        select * from access_versions n where n.access_id = a.access_id and n.created_at <= ${at}
        order by n.access_version desc limit 1
      ) v
      where v.institution_id = ${institutionId} and v.state = 'active'
      order by a.access_id limit ${limit}
    ) v
    left join people p on p.id = v.person_id and not p.removed
    left join lateral (
      select id::text as review_id, case when approved_at <= ${at} then 'approved' else 'proposed' end as review_state
      from access_reviews
      where access_id = v.access_id and access_version = v.access_version and ${effectiveReviewAt(sql, at)}
    ) r on true
    order by v.access_id`
