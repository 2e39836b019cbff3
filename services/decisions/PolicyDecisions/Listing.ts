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
import { policyReviewColumns, type PolicyReviewRow, type Signature, stamp } from "../../requests/PolicyReviews.ts"
import { masked } from "../../platform/mail/MailAddress.ts"

export interface Page {
  readonly personId: PersonId
  /** Any text; the list is empty where it is no state. */
  readonly state: string
  readonly afterId: string | null
  readonly limit: number
  /** The reviews to choose from; all by default. */
  readonly only?: ReadonlyArray<string>
}

interface Row extends PolicyReviewRow {
  readonly approvals: ReadonlyArray<Omit<Signature, "approved_at"> & { readonly approved_at: string }> | null
  readonly asked: Readonly<Record<string, unknown>>
}

const hidden = ({ recipient, ...asked }: Row["asked"]) =>
  recipient === undefined ? asked : { ...asked, recipient: masked(String(recipient)) }

const viewOf = (row: Row): PolicyReviews["items"][number] => ({
  review_id: row.id,
  state: row.state,
  required_roles: row.required_roles,
  approvals: (row.approvals ?? []).map((one) => ({ ...one, approved_at: stamp(new Date(one.approved_at)) })),
  kind: row.kind,
  request_id: row.request_id,
  institution_id: row.institution_id,
  project_id: row.project_id,
  author_person_id: row.author,
  reason: row.reason,
  asked: hidden(row.asked),
  created_at: stamp(row.created_at),
})

/** SQL of the memberships that are effective now, of active people and institutions. */
const standing = (sql: PgClient.PgClient, now: Date) =>
  sql`
    select m.institution_id, m.role, m.person_id
    from institution_memberships m join institutions i on i.id = m.institution_id and i.status = 'active'
    join people p on p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
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

/** SQL of what `v` asks for, as JSON, of its request `r` or its project. */
const asked = (sql: PgClient.PgClient) =>
  sql`case v.kind
      when 'website' then (
        select to_jsonb(j) from (
          select name, website, environment, connector_kind, connector_product, preview_digest, redirect_uris,
            post_logout_redirect_uris, backchannel_logout_uri, requested_scopes,
            r.fields ->> 'owner_person_id' as owner_person_id
          from projects where id = v.project_id) j)
      when 'membership' then r.fields || jsonb_build_object('person_id', r.person_id)
      else r.fields
    end`

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
              and s.person_id <> v.author
              and (v.state <> 'open' or ${countsBeside(sql, sql`s.person_id`, now, sql`true`)})))))`

/** SQL of whether the open review `v`, of the request `r`, may still be decided, and has no signature of the person. */
const isUnsigned = (sql: PgClient.PgClient, now: number, personId: PersonId) =>
  sql`coalesce(r.expires_at > ${new Date(now)}, true)
      and not exists (select from policy_approvals a where a.review_id = v.id and a.person_id = ${personId})
      -- A review of a project that moved to another institution can be neither approved nor declined here.
      and (v.kind not in ('website', 'launch') or not exists (
        select from projects j where j.id = v.project_id and j.institution_id <> v.institution_id))`

/** SQL of whether the person is independent of the signers of `v` and of its author. */
const isIndependent = (sql: PgClient.PgClient, now: number, personId: PersonId) =>
  countsBeside(
    sql,
    sql`${personId}::text`,
    now,
    // A person who approved an institution may approve its first enrollment.
    sql`not (v.kind = 'enrollment' and exists (
      select from institutions i where i.id = v.institution_id and ${personId} = any(i.approved_by)) and not exists (
      select from policy_reviews w join requests e on e.id = w.request_id and e.state in ('invited', 'accepted')
      where w.institution_id = v.institution_id and w.kind = 'enrollment'))`,
  )

export const listing = (sql: PgClient.PgClient) => {
  const columns = sql.literal(policyReviewColumns)

  return Effect.fn("PolicyDecisions.list")(
    function* (page: Page): Effect.fn.Return<PolicyReviews, SqlError.SqlError> {
      const { afterId, limit, only, personId, state } = page
      const now = yield* Clock.currentTimeMillis
      const known = PolicyReviewState.literals.find((one) => one === state)
      if (known === undefined) return { items: [] }
      // The state is a literal, one of a few, so that the plan can use the partial index of open reviews.
      const inState = sql`state = ${sql.literal(`'${known}'`)} and (${afterId}::uuid is null or id > ${afterId}::uuid)
        ${only === undefined ? sql`` : sql`and ${idIn(sql, "id", "uuid", only)}`}`
      const rows = yield* sql<Row>`
        with standing as not materialized (${standing(sql, new Date(now))}), me as (
          select exists (
            select from people where id = ${personId} and operator and status = 'active' and not removed) as operator
        ), ${bound(sql, now, page)}
        select ${columns}, (
          select json_agg(json_build_object('role', a.role, 'person_id', a.person_id, 'approved_at', a.approved_at)
            order by a.approved_at, a.role)
          from policy_approvals a where a.review_id = v.id) as approvals, ${asked(sql)} as asked
        from me cross join lateral (
          select * from policy_reviews where me.operator and ${inState}
          union all
          select * from policy_reviews where not me.operator and ${inState}
            and institution_id in (select institution_id from standing where person_id = ${personId})
        ) v join requests r on r.id = v.request_id
        where canonical_person(v.author) <> ${personId}
          and (v.state <> 'open' or ${isUnsigned(sql, now, personId)})
          and ${hasRole(sql, now, personId)}
          and (v.state <> 'open' or ${isIndependent(sql, now, personId)})
        order by v.id limit ${limit}`
      return { items: rows.map(viewOf) }
    },
  )
}
