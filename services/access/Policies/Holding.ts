/**
 * Whether a person may sign a policy review in a role (RULES, Trust). Each role by somebody else, none by the author, and
 * nobody who made or approved another's place beside that other. While an institution has no administrator who could
 * sign, an operator stands in; and whoever approved an institution may approve its first enrollment.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { FourEyesRequired } from "../../../schemas/problems/Identity.ts"
import { needs, roleRequired, type Roles, type Standing } from "../../people/Roles.ts"
import type { PolicyReviewRow } from "../PolicyReviews.ts"

/** The person at the door: what they are, read under lock. */
export interface Signer {
  readonly personId: string
  readonly operator: boolean
  /** Null without a membership in the review's institution. */
  readonly standing: Standing | null
}

export const holding = (sql: PgClient.PgClient, roles: Roles["Service"]) => {
  const administrators = (institutionId: string) =>
    sql<{ person_id: string }>`
      select distinct m.person_id from institution_memberships m
      where m.institution_id = ${institutionId} and m.role = 'administrator' and m.state = 'active' and not m.removed`

  /** Whether two ids are one person's. */
  const isSame = (one: string, other: string) =>
    Effect.map(
      sql<{ same: boolean }>`select canonical_person(${one}) = canonical_person(${other}) as same`,
      ([row]) => row!.same,
    )

  // Who proposes a launch signs as an owner.
  const ownersOf = ({ kind, project_id }: PolicyReviewRow) => kind === "launch" ? project_id : null

  /** The first of the others beside whom the person does not count. */
  const bound = Effect.fnUntraced(function* (
    review: PolicyReviewRow,
    personId: string,
    others: ReadonlyArray<string>,
  ) {
    for (const other of others) if (!(yield* roles.independent(personId, other, ownersOf(review)))) return other
    return null
  })

  /** Whether nobody else could sign as administrator: who signed already, or does not count, could not. */
  const lacksAdministrator = Effect.fnUntraced(function* (review: PolicyReviewRow, signed: ReadonlyArray<string>) {
    const institutionId = review.institution_id!
    for (const { person_id } of yield* administrators(institutionId)) {
      const standing = yield* roles.inInstitution(person_id, institutionId).pipe(
        Effect.catchTag("NotFound", () => Effect.succeed(null)),
      )
      if (standing?.administrator && (yield* bound(review, person_id, [review.author, ...signed])) === null) {
        return false
      }
    }
    return true
  })

  /**
   * Fails with the reason why the person does not hold the role; gives whether they stand in for an administrator. A name
   * that is no role at all is nobody's to hold, and the review's state answers it.
   */
  const inRole = Effect.fnUntraced(
    function* (signer: Signer, role: string, review: PolicyReviewRow, signed: ReadonlyArray<string>) {
      const { operator, standing } = signer
      if (role === "operator" && !operator) return yield* roleRequired("an active operator")
      if (role !== "administrator" && role !== "sponsor") return false
      if (role === "administrator" && !standing?.administrator && operator && review.institution_id !== null) {
        if (yield* lacksAdministrator(review, signed)) return true
      }
      if (standing === null) {
        return yield* roleRequired(`an effective membership as ${role} in the review's institution`)
      }
      yield* needs(standing, role)
      return false
    },
  )

  const firstEnrollment = Effect.fnUntraced(function* (personId: string, review: PolicyReviewRow) {
    if (review.kind !== "enrollment") return false
    const approved = yield* sql`
      select from institutions where id = ${review.institution_id} and ${personId} = any(approved_by)`
    if (approved.length === 0) return false
    // Of two that are signed at once the second waits for the first one's commit (the trigger on policy_approvals, too).
    yield* sql`
      select pg_advisory_xact_lock(hashtextextended(${`first enrollment of ${review.institution_id}`}, 0))`
    const sent = yield* sql`
      select from policy_reviews v join requests r on r.id = v.request_id and r.state in ('invited', 'accepted')
      where v.institution_id = ${review.institution_id} and v.kind = 'enrollment' limit 1`
    return sent.length === 0
  })

  /** Fails where the person does not count as one more beside the author and those who signed. */
  const mustBeAnother = Effect.fnUntraced(function* (
    personId: string,
    review: PolicyReviewRow,
    signed: ReadonlyArray<string>,
  ): Effect.fn.Return<void, FourEyesRequired | SqlError.SqlError> {
    for (const other of [review.author, ...signed]) {
      if (yield* isSame(personId, other)) return yield* yield* roles.fourEyes(personId, other)
    }
    const beside = (yield* firstEnrollment(personId, review)) ? signed : [review.author, ...signed]
    const other = yield* bound(review, personId, beside)
    if (other !== null) return yield* yield* roles.fourEyes(personId, other, ownersOf(review))
  })

  return { inRole, mustBeAnother, isSame }
}
