/**
 * Loads a policy review and the person who is about to sign or decline it, by one statement, and judges whether the
 * signature counts.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { InstitutionId, PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { heldIn, isOperatorIn, operatorRow, Roles, type Standing, standingIn, standingOf } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import {
  answerTo,
  fence,
  isFenced,
  load,
  one,
  type Question,
  unchanged,
} from "../../platform/database/FencedCommand.ts"
import { isHeld } from "../../platform/database/Installation.ts"
import type { PolicyReviewRow } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import { holding, type Signed } from "./SignerEligibility.ts"

export interface PolicyDecision {
  readonly personId: PersonId
  readonly reviewId: PolicyReviewId
  /** The role that the person signs in. */
  readonly role: string
  readonly reason: string
  /** Checked after the person's rights and before the state. */
  readonly stepUp: Effect.Effect<void, Problems.InsufficientUserAuthentication>
}

/** The review as JSON has it. */
type StoredReview = Omit<PolicyReviewRow, "created_at"> & { readonly created_at: string; readonly written: string }

interface Institution {
  readonly status: string
  readonly written: string
  /** Whether the person approved the institution. */
  readonly approver: boolean
}

/** The columns of the request are null where there is no such review. */
interface Loaded extends RequestRow {
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

/** A signature that counts, not written yet. */
export interface Signature extends PolicyDecision {
  readonly review: PolicyReviewRow
  readonly request: RequestRow
  readonly signed: ReadonlyArray<Signed>
  /** Roles that are still missing after this signature. */
  readonly missing: ReadonlyArray<string>
  /** The person signs as an operator in an administrator's place. */
  readonly standsIn: boolean
  readonly held: boolean
  /** Null where the review belongs to no institution. */
  readonly institution: Institution | null
  /** Whether the project belongs to another institution by now. */
  readonly moved: boolean
  /** Adds the fences under which the judgement holds; the review stays locked and open. */
  readonly keep: (approves: boolean) => Effect.Effect<void, SqlError.SqlError>
}

const institutionRow = (sql: PgClient.PgClient, personId: PersonId, id: Statement.Fragment): Question => ({
  rows: sql`select status, xmin::text as written, ${personId} = any(approved_by) as approver
    from institutions where id = ${id} and not removed`,
  lock: sql`for share`,
})

const projectRow = (sql: PgClient.PgClient, id: Statement.Fragment, fenced: boolean): Question => ({
  rows: sql`select institution_id from projects where id = ${id}`,
  // In a transaction, carrying out the last signature changes the project.
  lock: fenced ? sql`for share` : sql`for update`,
})

export const signing = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const { inRole, mustBeAnother } = holding(sql, roles)
  const { columns } = requestRows(sql)

  const read = ({ personId, reviewId }: PolicyDecision, now: Date, fenced: boolean) => {
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

  /** Fails with the reason why the person may not sign; returns whether the person stands in for an administrator. */
  const mayAct = Effect.fnUntraced(
    function* (
      loaded: Loaded,
      review: PolicyReviewRow,
      standing: Standing | null,
      { personId, role, stepUp }: PolicyDecision,
    ) {
      const operator = isOperatorIn(loaded.operator)
      if (!operator && standing === null && !loaded.same) return yield* new NotFound()
      if (loaded.same) return yield* yield* roles.fourEyes(personId, review.author)
      const standsIn = yield* inRole({ personId, operator, standing }, role, review, loaded.signed)
      const first = (JSON.parse(loaded.institution) as ReadonlyArray<Institution>)[0]?.approver === true &&
        review.kind === "enrollment" && !loaded.sent
      if (review.state === "open") {
        yield* mustBeAnother(personId, review, loaded.signed, loaded.independent || first)
      }
      yield* stepUp
      return standsIn
    },
  )

  /** Fails where the review does not wait for this role; returns the other roles that it waits for. */
  const mustWait = Effect.fnUntraced(function* (loaded: Loaded, review: PolicyReviewRow, role: string, now: number) {
    if (review.state !== "open") return yield* new Problems.InvalidState({ state: review.state, allowed: ["open"] })
    const state = stateAt(loaded, now)
    if (state === "expired") return yield* new Problems.InvalidState({ state, allowed: ["open"] })
    const allowed = review.required_roles.filter((needed) => !loaded.signed.some((one) => one.role === needed))
    if (!allowed.some((needed) => needed === role)) {
      const detail = `The review waits for ${allowed.join(" and ")}, not for ${role}.`
      return yield* new Problems.InvalidState({ state: review.state, allowed, detail })
    }
    return allowed.filter((needed) => needed !== role)
  })

  /**
   * The fence on the institution. An approver of the institution may sign its first invitation, so while none was sent
   * a signature writes the institution's row: of two at once only one is the first.
   */
  const ofInstitution = (
    loaded: Loaded,
    { institution_id, kind }: PolicyReviewRow,
    personId: PersonId,
    approves: boolean,
  ) => {
    const [institution] = JSON.parse(loaded.institution) as ReadonlyArray<Institution>
    return approves && kind === "enrollment" && !loaded.sent && institution !== undefined
      ? one((earlier) =>
        sql`update institutions set updated_at = updated_at
          where id = ${institution_id} and xmin = ${institution.written}::xid and ${earlier} returning 1`
      )
      : unchanged(sql, institutionRow(sql, personId, sql`${institution_id}`), loaded.institution)
  }

  const keeping = Effect.fnUntraced(function* (
    loaded: Loaded,
    review: PolicyReviewRow,
    { personId, role }: PolicyDecision,
    { approves, now, standsIn }: { readonly approves: boolean; readonly now: Date; readonly standsIn: boolean },
  ) {
    const { institution_id, project_id } = review
    const byOperator = standsIn || role === "operator"
    if (byOperator) yield* fence(sql, unchanged(sql, operatorRow(sql, personId), loaded.operator))
    if (institution_id !== null) {
      const standing = standingIn(sql, personId, institution_id, now)
      if (!byOperator) yield* fence(sql, unchanged(sql, standing, loaded.standing))
      yield* fence(sql, ofInstitution(loaded, review, personId, approves))
    }
    if (project_id !== null) {
      yield* fence(sql, unchanged(sql, projectRow(sql, sql`${project_id}`, yield* isFenced), loaded.project))
    }
    yield* fence(
      sql,
      one((earlier) =>
        sql`select 1 from policy_reviews
          where id = ${review.id}::uuid and xmin = ${loaded.review!.written}::xid and state = 'open' and ${earlier}
          for update`
      ),
    )
  })

  return Effect.fnUntraced(function* (decision: PolicyDecision) {
    const now = yield* Clock.currentTimeMillis
    const loaded = yield* read(decision, new Date(now), yield* isFenced)
    if (loaded.review === null) return yield* new NotFound()
    const review: PolicyReviewRow = { ...loaded.review, created_at: new Date(loaded.review.created_at) }
    const { institution_id } = review
    const standing = institution_id === null
      ? null
      : standingOf(decision.personId, institution_id, JSON.parse(loaded.standing))
    const standsIn = yield* mayAct(loaded, review, standing, decision)
    const missing = yield* mustWait(loaded, review, decision.role, now)
    const [institution = null] = JSON.parse(loaded.institution) as ReadonlyArray<Institution>
    const [project] = JSON.parse(loaded.project) as ReadonlyArray<{ readonly institution_id: InstitutionId }>
    return {
      ...decision,
      review,
      request: loaded,
      signed: loaded.signed,
      missing,
      standsIn,
      held: loaded.held,
      institution,
      moved: project !== undefined && project.institution_id !== institution_id,
      keep: (approves: boolean) => keeping(loaded, review, decision, { approves, now: new Date(now), standsIn }),
    }
  })
})
