/** Judges whether a person's signature on a policy review, or its refusal, counts now. */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isOperatorIn, Roles, type Standing, standingOf } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { isFenced } from "../../platform/database/FencedCommand.ts"
import type { UnitOfWork } from "../../platform/database/UnitOfWork.ts"
import type { PolicyReviewRow } from "../../requests/PolicyReviews.ts"
import { type RequestRow, stateAt } from "../../requests/RequestRows.ts"
import { type Institution, institutionIn, type Loaded, loadReview, type PolicyDecision } from "./LoadPolicyReview.ts"
import { notOwnAccess } from "../../access/AnswerableAccess.ts"
import { notOneself } from "../Requests/AskReset.ts"
import { keepJudgement } from "./SignatureFences.ts"
import { excludedFrom, holding, type Signed } from "./SignerEligibility.ts"

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
  readonly keep: (approves: boolean) => Effect.Effect<void, SqlError.SqlError, UnitOfWork>
}

/** Fails where the review does not wait for this role; returns the other roles that it waits for. */
const mustWait = Effect.fnUntraced(function* (loaded: Loaded, review: PolicyReviewRow, role: string, now: number) {
  if (review.state !== "open") return yield* new InvalidState({ state: review.state, allowed: ["open"] })
  const state = stateAt(loaded, now)
  if (state === "expired") return yield* new InvalidState({ state, allowed: ["open"] })
  const allowed = review.required_roles.filter((needed) => !loaded.signed.some((one) => one.role === needed))
  if (!allowed.some((needed) => needed === role)) {
    const detail = `The review waits for ${allowed.join(" and ")}, not for ${role}.`
    return yield* new InvalidState({ state: review.state, allowed, detail })
  }
  return allowed.filter((needed) => needed !== role)
})

export const signing = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const { inRole, mustBeAnother } = holding(sql, roles)

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
      const excluded = excludedFrom(loaded)
      const [itself] = excluded === null ? [] : yield* sql<{ same: boolean }>`
          select canonical_person(${excluded}::text) = canonical_person(${personId}::text) as same`
      if (itself?.same === true) {
        return yield* loaded.kind === "access_revocation" ? notOwnAccess() : notOneself("decides")
      }
      const standsIn = yield* inRole({ personId, operator, standing, excluded }, role, review, loaded.signed)
      const first = institutionIn(loaded)?.approver === true &&
        review.kind === "enrollment" && !loaded.sent
      if (review.state === "open") {
        yield* mustBeAnother(personId, review, loaded.signed, loaded.independent || first)
      }
      yield* stepUp
      return standsIn
    },
  )

  return Effect.fnUntraced(function* (decision: PolicyDecision) {
    const now = yield* Clock.currentTimeMillis
    const loaded = yield* loadReview(sql, decision, new Date(now), yield* isFenced)
    if (loaded.review === null) return yield* new NotFound()
    const review: PolicyReviewRow = { ...loaded.review, created_at: new Date(loaded.review.created_at) }
    const { institution_id } = review
    const standing = institution_id === null
      ? null
      : standingOf(decision.personId, institution_id, JSON.parse(loaded.standing))
    const standsIn = yield* mayAct(loaded, review, standing, decision)
    const missing = yield* mustWait(loaded, review, decision.role, now)
    const [project] = JSON.parse(loaded.project) as ReadonlyArray<{ readonly institution_id: InstitutionId }>
    return {
      ...decision,
      review,
      request: loaded,
      signed: loaded.signed,
      missing,
      standsIn,
      held: loaded.held,
      institution: institutionIn(loaded),
      moved: project !== undefined && project.institution_id !== institution_id,
      keep: (approves: boolean) =>
        keepJudgement(sql, loaded, review, decision, { approves, now: new Date(now), standsIn }),
    }
  })
})
