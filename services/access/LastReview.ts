/** SQL of when an Access version was last looked at: its grant, an approved review of it, or a confirmation. */
import type { PgClient } from "@effect/sql-pg"
import { reviewPeriodMillis } from "./AccessReviews/ReviewExpiry.ts"

/**
 * SQL of one row, `reviewed_at`, `reviewed_by` and `reviewed_how`, of an Access `a` whose present version is `v`.
 */
export const lastReview = (sql: PgClient.PgClient) =>
  sql`
    select at as reviewed_at, by as reviewed_by, how as reviewed_how from (
      select v.created_at as at, null as by, 'grant' as how
      union all
      select approved_at, approved_by, 'review' from access_reviews
      where access_id = a.id and access_version = a.access_version and state in ('approved', 'lapsed')
        and approved_at is not null
      union all (
        select confirmed_at, confirmed_by, 'confirmation' from access_confirmations
        where access_id = a.id and access_version = a.access_version
        order by confirmed_at desc limit 1
      )
    ) times order by at desc limit 1`

/** The time before which a last review is too long ago. */
export const overdueBefore = (now: Date) => new Date(now.getTime() - reviewPeriodMillis)

/** SQL of whether the review of an Access `a` is overdue. What was granted since is not, without a look at its reviews. */
export const overdueIn = (sql: PgClient.PgClient, now: Date) =>
  sql`exists (
    select from access_versions v cross join lateral (${lastReview(sql)}) last
    where v.access_id = a.id and v.access_version = a.access_version and v.created_at <= ${overdueBefore(now)}
      and last.reviewed_at <= ${overdueBefore(now)})`
