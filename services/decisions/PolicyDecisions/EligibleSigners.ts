/**
 * The people who hold a role that an open review still needs, and whether each may sign it now, by the rules that
 * `SignerEligibility` applies when a signature is given. Operators are named to operators only; others read how many
 * of them may sign.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import type { PolicySigners, SignerRefusal } from "../../../schemas/identity/PolicyReview.ts"
import { isOperator } from "../../people/InstitutionReader.ts"
import { isDecidable, isExcluded, isFirstEnrollment, standing } from "./Listing.ts"

/** How many people an answer names. */
const most = 50

interface Found {
  readonly person_id: PersonId
  readonly role: string
  readonly operator: boolean
  readonly stands_in: boolean
  readonly refusal: SignerRefusal | null
}

/** SQL of the members of the review's institution who hold a missing role, and whether it is effective. */
const members = (sql: PgClient.PgClient) =>
  sql`
    select v.id, n.role, m.person_id, exists (
        select from standing s
        where s.institution_id = v.institution_id and s.role = n.role and s.person_id = m.person_id) as effective
    from waiting v join needed n on true
    join institution_memberships m on m.institution_id = v.institution_id and m.role = n.role and not m.removed
      and m.state <> 'ended'
    join people p on p.id = m.person_id and not p.removed and p.merged_into is null`

/** SQL of why a holder `c` of a missing role may not sign the review `v`; null where the holder may. */
const refusal = (sql: PgClient.PgClient, now: Date) =>
  sql`case
      when canonical_person(v.author) = c.person_id then 'author'
      when exists (select from policy_approvals a
        where a.review_id = v.id and canonical_person(a.person_id) = c.person_id) then 'signed'
      when ${isExcluded(sql, sql`c.person_id`)} then
        case r.kind when 'access_revocation' then 'own_access' else 'own_authenticators' end
      when not c.effective then 'not_effective'
      when exists (
        select from (
          select v.author as id where not ${isFirstEnrollment(sql, sql`c.person_id`)}
          union all select a.person_id from policy_approvals a where a.review_id = v.id) o
        where not counts_as_two(c.person_id, o.id, case when v.kind = 'launch' then v.project_id end, ${now})
      ) then 'not_independent'
    end`

const statement = (sql: PgClient.PgClient, reviewId: PolicyReviewId, now: Date) => {
  const operators = sql`(select id from people
      where operator and not auditor and status = 'active' and not removed and merged_into is null)`
  return sql<Found>`
    with standing as not materialized (${standing(sql, now)}), waiting as materialized (
      select v.* from policy_reviews v join requests r on r.id = v.request_id
      where v.id = ${reviewId}::uuid and v.state = 'open' and ${isDecidable(sql, now.getTime())}
        and (v.institution_id is null or exists (
          select from institutions i where i.id = v.institution_id and i.status = 'active' and not i.removed))
    ), needed as (
      select role from waiting v cross join unnest(v.required_roles) u(role)
      where not exists (select from policy_approvals a where a.review_id = v.id and a.role = u.role)
    ), member as materialized (
      select c.*, ${refusal(sql, now)} as refusal
      from (${members(sql)}) c join waiting v on true join requests r on r.id = v.request_id
    ), operator as (
      select c.*, ${refusal(sql, now)} as refusal
      from (
        select v.id, n.role, o.id as person_id, true as effective
        from waiting v join needed n on n.role = 'operator' or n.role = 'administrator' and v.institution_id is not null
          and not exists (select from member where role = 'administrator' and refusal is null)
        cross join ${operators} o
      ) c join waiting v on true join requests r on r.id = v.request_id
    )
    select person_id, role, false as operator, false as stands_in, refusal from member
    union all
    select person_id, role, true, role = 'administrator', refusal from operator
    order by refusal nulls first, role, person_id`
}

export const eligibleSigners = (sql: PgClient.PgClient) =>
  /** Null for a person who is neither an operator nor an effective sponsor or administrator: others read no members. */
  Effect.fn("PolicyDecisions.signers")(function* (personId: PersonId, reviewId: PolicyReviewId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [reader] = yield* sql<{ operator: boolean; member: boolean }>`
      with standing as not materialized (${standing(sql, now)})
      select ${isOperator(sql, personId)} as operator, exists (
        select from standing s join policy_reviews v on v.id = ${reviewId}::uuid
        where s.institution_id = v.institution_id and s.person_id = ${personId}
          and s.role in ('sponsor', 'administrator')) as member`
    if (!reader!.operator && !reader!.member) return null
    const found = yield* statement(sql, reviewId, now)
    const people = found.filter(({ operator }) => reader!.operator || !operator)
    const signers: PolicySigners = {
      people: people.slice(0, most).map(({ person_id, refusal, role, stands_in }) => ({
        person_id,
        role,
        stands_in,
        refusal,
      })),
      more: Math.max(0, people.length - most),
      operators: new Set(
        found.filter(({ operator, refusal }) => operator && refusal === null).map(({ person_id }) => person_id),
      ).size,
    }
    return signers
  })
