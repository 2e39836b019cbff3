/** The reviews that a person may act on, ascending by id, for paging forward. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PolicyReviews } from "../../../schemas/identity/Policies.ts"
import { type PolicyReviewRow, policyReviewRows, type Signature, stamp } from "../PolicyReviews.ts"

export interface Page {
  readonly personId: string
  readonly state: string
  readonly afterId: string | null
  readonly limit: number
}

interface Row extends PolicyReviewRow {
  readonly approvals: ReadonlyArray<Omit<Signature, "approved_at"> & { readonly approved_at: string }> | null
}

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
  created_at: stamp(row.created_at),
})

export const listing = (sql: PgClient.PgClient) => {
  const { columns } = policyReviewRows(sql)
  return Effect.fn("Policies.list")(
    function* ({ afterId, limit, personId, state }: Page): Effect.fn.Return<PolicyReviews, SqlError.SqlError> {
      const now = new Date(yield* Clock.currentTimeMillis)
      const rows = yield* sql<Row>`
        with standing as not materialized (
          select m.institution_id, m.role, m.person_id
          from institution_memberships m join institutions i on i.id = m.institution_id and i.status = 'active'
          join people p on p.id = m.person_id and p.status = 'active' and not p.removed
          where m.state = 'active' and not m.removed and not i.removed
            and (m.role <> 'administrator' or m.accepted_at <= ${now})
            and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)
        ), me as (
          select exists (
            select from people where id = ${personId} and operator and status = 'active' and not removed) as operator
        )
        select ${columns}, (
          select json_agg(json_build_object('role', a.role, 'person_id', a.person_id, 'approved_at', a.approved_at)
            order by a.approved_at, a.role)
          from policy_approvals a where a.review_id = v.id) as approvals
        from policy_reviews v, me
        where (me.operator or v.institution_id in (select institution_id from standing where person_id = ${personId}))
          and v.state = ${state} and (${afterId}::uuid is null or v.id > ${afterId}::uuid)
          and canonical_person(v.author) <> ${personId}
          and (v.state <> 'open' or not exists (
            select from policy_approvals a where a.review_id = v.id and a.person_id = ${personId}))
          and exists (
            select from unnest(v.required_roles) needed(role)
            where (v.state <> 'open' or not exists (
                select from policy_approvals a where a.review_id = v.id and a.role = needed.role))
              and (
                (needed.role = 'operator' and me.operator)
                or exists (select from standing s where s.institution_id = v.institution_id and s.role = needed.role
                  and s.person_id = ${personId})
                or (needed.role = 'administrator' and me.operator and not exists (
                  select from standing s where s.institution_id = v.institution_id and s.role = 'administrator'
                    and s.person_id <> v.author))))
        order by v.id limit ${limit}`
      return { items: rows.map(viewOf) }
    },
  )
}
