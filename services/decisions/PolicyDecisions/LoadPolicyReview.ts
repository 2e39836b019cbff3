/** Loads a policy review and the person who is about to sign or decline it, by one statement. */
import type { PgClient } from "@effect/sql-pg"
import type { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import type { InsufficientUserAuthentication } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { heldIn, operatorRow } from "../../people/Roles.ts"
import { answerTo, load, type Question } from "../../platform/database/FencedCommand.ts"
import { isHeld } from "../../platform/database/Installation.ts"
import type { PolicyReviewRow } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import type { Signed } from "./SignerEligibility.ts"

export interface PolicyDecision {
  readonly personId: PersonId
  readonly reviewId: PolicyReviewId
  /** The role that the person signs in. */
  readonly role: string
  readonly reason: string
  /** Checked after the person's rights and before the state. */
  readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
}

/** The review as JSON has it. */
type StoredReview = Omit<PolicyReviewRow, "created_at"> & { readonly created_at: string; readonly written: string }

export interface Institution {
  readonly status: string
  readonly written: string
  /** Whether the person approved the institution. */
  readonly approver: boolean
}

/** The columns of the request are null where there is no such review. */
export interface Loaded extends RequestRow {
  readonly review: StoredReview | null
  readonly signed: ReadonlyArray<Signed>
  readonly operator: string
  readonly standing: string
  readonly institution: string
  readonly project: string
  /** The person is the author. */
  readonly same: boolean
  /** The person is independent of the author. */
  readonly independent: boolean
  /** Whether an invitation into the institution was sent before. */
  readonly sent: boolean
  readonly held: boolean
}

/** The institution of the review, in an answer to `institutionRow`; null where the review belongs to none. */
export const institutionIn = ({ institution }: Loaded): Institution | null =>
  (JSON.parse(institution) as ReadonlyArray<Institution>)[0] ?? null

export const institutionRow = (sql: PgClient.PgClient, personId: PersonId, id: Statement.Fragment): Question => ({
  rows: sql`select status, xmin::text as written, ${personId} = any(approved_by) as approver
    from institutions where id = ${id} and not removed`,
  lock: sql`for share`,
})

export const projectRow = (sql: PgClient.PgClient, id: Statement.Fragment, fenced: boolean): Question => ({
  rows: sql`select institution_id from projects where id = ${id}`,
  // In a transaction, carrying out the last signature changes the project.
  lock: fenced ? sql`for share` : sql`for update`,
})

/** `fenced`: the command is a fenced write, outside any transaction. */
export const loadReview = (
  sql: PgClient.PgClient,
  { personId, reviewId }: PolicyDecision,
  now: Date,
  fenced: boolean,
) => {
  const { columns } = requestRows(sql)
  const owned = sql`case when v.kind = 'launch' then v.project_id end`
  return load<Loaded>(
    sql,
    sql`
    select ${columns}, case when v.id is not null then json_build_object('id', v.id, 'request_id', v.request_id,
        'kind', v.kind, 'author', v.author, 'institution_id', v.institution_id, 'project_id', v.project_id,
        'required_roles', v.required_roles, 'state', v.state, 'reason', v.reason, 'created_at', v.created_at,
        'written', v.xmin::text) end as review,
      (select coalesce(json_agg(a order by a.approved_at, a.role), '[]') from (
        select role, person_id, approved_at, canonical_person(${personId}) = canonical_person(person_id) as same,
          counts_as_two(${personId}, person_id, ${owned}, ${now}) as independent
        from policy_approvals where review_id = v.id) a) as signed,
      ${answerTo(sql, operatorRow(sql, personId))} as operator,
      ${answerTo(sql, { rows: sql`${heldIn(sql, personId, sql`v.institution_id`, now)} order by m.id` })} as standing,
      ${answerTo(sql, institutionRow(sql, personId, sql`v.institution_id`))} as institution,
      ${answerTo(sql, projectRow(sql, sql`v.project_id`, fenced))} as project,
      canonical_person(${personId}) = canonical_person(v.author) as same,
      counts_as_two(${personId}, v.author, ${owned}, ${now}) as independent,
      v.kind = 'enrollment' and exists (
        select from policy_reviews s join requests q on q.id = s.request_id and q.state in ('invited', 'accepted')
        where s.institution_id = v.institution_id and s.kind = 'enrollment') as sent,
      ${isHeld(sql)} as held
    from (select) always
    left join policy_reviews v on v.id = ${isUuid(reviewId) ? reviewId : null}::uuid
    left join requests r on r.id = v.request_id`,
  )
}
