/**
 * The reviews that a person may act on, ascending by id, for forward paging. Of the open ones only those on which the
 * person's signature would be accepted now, by the rules that `SignerEligibility` applies when a signature is given.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { type PolicyReviews, PolicyReviewState } from "../../../schemas/identity/PolicyReview.ts"
import { idIn } from "../../platform/database/IdIn.ts"
import { provenanceSince } from "../../people/FourEyes.ts"
import { listedColumns, listedOf, type ListedRow } from "./ListedReviews.ts"

export interface Page {
  readonly personId: PersonId
  /** Any text; the list is empty where it is no state. */
  readonly state: string
  readonly afterId: string | null
  readonly limit: number
  /** The reviews to choose from; all by default. */
  readonly only?: ReadonlyArray<string>
}

/** SQL of the memberships that are effective now, of active people and institutions. */
export const standing = (sql: PgClient.PgClient, now: Date) =>
  sql`
    select m.institution_id, m.role, m.person_id
    from institution_memberships m join institutions i on i.id = m.institution_id and i.status = 'active'
    join people p on p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
      and not p.auditor
    where m.state = 'active' and not m.removed and not i.removed
      and (m.role <> 'administrator' or m.accepted_at <= ${now})
      and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)`

/**
 * SQL of pairs of people who are not independent of each other, among the caller and all people of the open reviews that
 * are chosen from, computed once for a page: the rule of `counts_as_two`, without the ownership of a project.
 */
const bound = (sql: PgClient.PgClient, now: number, { only, personId }: Page) => {
  const among = only === undefined ? sql`true` : idIn(sql, "v.id", "uuid", only)
  return sql`concerned as not materialized (
      select ${personId} as id
      union select person_id from standing where role = 'administrator'
      union select canonical_person(author) from policy_reviews v where state = 'open' and ${among}
      union select a.person_id from policy_approvals a join policy_reviews v on v.id = a.review_id and v.state = 'open'
        where ${among}
    ), bound as materialized (
      select canonical_person(m.person_id) as one, canonical_person(h.hand) as other
      from (
        select id from concerned
        union select p.id from concerned c join people p on p.merged_into = c.id) p
      join provenance m on m.person_id = p.id and m.project_id is null
      cross join unnest(m.approved_by || m.made_by) h(hand)
      where m.at > ${provenanceSince(now)} and h.hand is not null and not exists (
        select from unnest(m.approved_by) a
        where canonical_person(a) not in (canonical_person(m.person_id), canonical_person(h.hand)))
    )`
}

/** SQL of whether a person is independent of all signers of `v`, and, where `author` holds, of its author. */
const countsBeside = (
  sql: PgClient.PgClient,
  person: Statement.Fragment,
  now: number,
  author: Statement.Fragment,
) =>
  sql`not exists (
      select from (
        select v.author as id where ${author}
        union all select a.person_id from policy_approvals a where a.review_id = v.id) o
      where canonical_person(o.id) = ${person}
        or (${person}, canonical_person(o.id)) in (select one, other from bound)
        or (canonical_person(o.id), ${person}) in (select one, other from bound)
        or (v.kind = 'launch' and not counts_as_two(${person}, o.id, v.project_id, ${new Date(now)})))`

/** SQL of whether the request `r` is about the person's own authenticators, or own Access, which others decide. */
export const isExcluded = (sql: PgClient.PgClient, person: Statement.Fragment) =>
  sql`(r.kind in ('authenticator_reset', 'access_revocation') and canonical_person(r.person_id) = ${person})`

/** SQL of whether the person may act on `v` in one of the roles that it needs; of an open one, in one still missing. */
const hasRole = (sql: PgClient.PgClient, now: number, personId: PersonId) =>
  sql`exists (
      select from unnest(v.required_roles) needed(role)
      where (v.state <> 'open' or not exists (
          select from policy_approvals a where a.review_id = v.id and a.role = needed.role))
        and (
          (needed.role = 'operator' and me.operator)
          or exists (select from standing s where s.institution_id = v.institution_id and s.role = needed.role
            and s.person_id = ${personId})
          or (needed.role = 'administrator' and me.operator and not exists (
            select from standing s where s.institution_id = v.institution_id and s.role = 'administrator'
              and s.person_id <> v.author and not ${isExcluded(sql, sql`s.person_id`)}
              and (v.state <> 'open' or ${countsBeside(sql, sql`s.person_id`, now, sql`true`)})))))`

/** SQL of whether the open review `v`, of the request `r`, may still be decided. */
export const isDecidable = (sql: PgClient.PgClient, now: number) =>
  sql`coalesce(r.expires_at > ${new Date(now)}, true)
      -- A review of a project that moved to another institution can be neither approved nor declined here.
      and (v.kind not in ('website', 'launch') or not exists (
        select from projects j where j.id = v.project_id and j.institution_id <> v.institution_id))`

/** SQL of whether the open review `v`, of the request `r`, may still be decided, and has no signature of the person. */
const isUnsigned = (sql: PgClient.PgClient, now: number, personId: PersonId) =>
  sql`${isDecidable(sql, now)}
      and not exists (select from policy_approvals a where a.review_id = v.id and a.person_id = ${personId})`

/** SQL of whether the review `v` is of an institution that the person approved and that no invitation was sent into. */
export const isFirstEnrollment = (sql: PgClient.PgClient, person: Statement.Fragment) =>
  sql`(v.kind = 'enrollment' and exists (
      select from institutions i where i.id = v.institution_id and ${person} = any(i.approved_by)) and not exists (
      select from policy_reviews w join requests e on e.id = w.request_id and e.state in ('invited', 'accepted')
      where w.institution_id = v.institution_id and w.kind = 'enrollment'))`

/** SQL of whether the person is independent of the signers of `v` and of its author. */
const isIndependent = (sql: PgClient.PgClient, now: number, personId: PersonId) =>
  countsBeside(
    sql,
    sql`${personId}::text`,
    now,
    // A person who approved an institution may approve its first enrollment.
    sql`not ${isFirstEnrollment(sql, sql`${personId}::text`)}`,
  )

export const listing = (sql: PgClient.PgClient) => {
  return Effect.fn("PolicyDecisions.list")(
    function* (page: Page): Effect.fn.Return<PolicyReviews, SqlError.SqlError> {
      const { afterId, limit, only, personId, state } = page
      const now = yield* Clock.currentTimeMillis
      const known = PolicyReviewState.literals.find((one) => one === state)
      if (known === undefined) return { items: [] }
      // The state is a literal, one of a few, so that the plan can use the partial index of open reviews.
      const inState = sql`state = ${sql.literal(`'${known}'`)} and (${afterId}::uuid is null or id > ${afterId}::uuid)
        ${only === undefined ? sql`` : sql`and ${idIn(sql, "id", "uuid", only)}`}`
      const rows = yield* sql<ListedRow>`
        with standing as not materialized (${standing(sql, new Date(now))}), me as (
          select exists (
            select from people
            where id = ${personId} and operator and not auditor and status = 'active' and not removed) as operator
        ), ${bound(sql, now, page)}
        select ${listedColumns(sql)}
        from me cross join lateral (
          select * from policy_reviews where me.operator and ${inState}
          union all
          select * from policy_reviews where not me.operator and ${inState}
            and institution_id in (select institution_id from standing where person_id = ${personId})
        ) v join requests r on r.id = v.request_id
        where canonical_person(v.author) <> ${personId} and not ${isExcluded(sql, sql`${personId}::text`)}
          and (v.state <> 'open' or ${isUnsigned(sql, now, personId)})
          and ${hasRole(sql, now, personId)}
          and (v.state <> 'open' or ${isIndependent(sql, now, personId)})
        order by v.id limit ${limit}`
      return { items: rows.map(listedOf) }
    },
  )
}
