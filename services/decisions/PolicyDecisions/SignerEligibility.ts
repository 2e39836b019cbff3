/**
 * Whether a person may sign a policy review in a role (docs/guarantees.md). Each role is signed by another person, none by
 * the author, and no signer made or approved the membership of another signer. While an institution has no administrator
 * who could sign, an operator signs in that role; the approver of an institution may approve its first enrollment. The
 * removal of a person's authenticators is decided by others: an intruder may act as that person. So is whether a person's
 * Access is revoked.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { needs, roleRequired, type Roles, type Standing } from "../../people/Roles.ts"
import type { PolicyReviewRow, Signature } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"

/** The person who is about to sign, as loaded. */
export interface Signer {
  readonly personId: PersonId
  readonly operator: boolean
  /** Null without a membership in the review's institution. */
  readonly standing: Standing | null
  /** The person who must not decide this request (`excludedFrom`). */
  readonly excluded: PersonId | null
}

/** A given signature, and how its signer relates to the person who is about to sign. */
export interface Signed extends Omit<Signature, "approved_at"> {
  readonly approved_at: string
  /** The signer and the person are the same. */
  readonly same: boolean
  /** The signer and the person are independent. */
  readonly independent: boolean
}

/**
 * The person who must not decide the request, since it is about the own authenticators, or the own Access; null for
 * other requests.
 */
export const excludedFrom = ({ kind, person_id }: Pick<RequestRow, "kind" | "person_id">) =>
  kind === "authenticator_reset" || kind === "access_revocation" ? person_id : null

// The author of a launch acts as an owner of the project.
const ownersOf = ({ kind, project_id }: PolicyReviewRow) => kind === "launch" ? project_id : null

export const holding = (sql: PgClient.PgClient, roles: Roles["Service"]) => {
  const administrators = (institutionId: InstitutionId, excluded: PersonId | null) =>
    sql<{ person_id: PersonId }>`
      select distinct m.person_id from institution_memberships m
      where m.institution_id = ${institutionId} and m.role = 'administrator' and m.state = 'active' and not m.removed
        and m.person_id is distinct from canonical_person(${excluded}::text)`

  const countsBeside = Effect.fnUntraced(function* (
    review: PolicyReviewRow,
    personId: PersonId,
    others: ReadonlyArray<PersonId>,
  ) {
    for (const other of others) if (!(yield* roles.independent(personId, other, ownersOf(review)))) return false
    return true
  })

  /**
   * Whether the institution has no administrator who could sign: none who has not signed yet, is not excluded and is
   * independent of the author and the signers. Read without a lock: an administrator who is made concurrently counts as made after the
   * signature.
   */
  const lacksAdministrator = Effect.fnUntraced(function* (
    review: PolicyReviewRow,
    signed: ReadonlyArray<Signed>,
    excluded: PersonId | null,
  ) {
    const institutionId = review.institution_id!
    const others = [review.author, ...signed.map(({ person_id }) => person_id)]
    for (const { person_id } of yield* administrators(institutionId, excluded)) {
      const standing = yield* roles.inInstitution(person_id, institutionId, "none").pipe(
        Effect.catchTag("NotFound", () => Effect.succeed(null)),
      )
      if (standing?.administrator && (yield* countsBeside(review, person_id, others))) return false
    }
    return true
  })

  /**
   * Fails with the reason why the person does not hold the role; returns whether the person stands in for an
   * administrator. A text that is no role passes here, and is refused because the review does not wait for it.
   */
  const inRole = Effect.fnUntraced(
    function* (signer: Signer, role: string, review: PolicyReviewRow, signed: ReadonlyArray<Signed>) {
      const { excluded, operator, standing } = signer
      if (role === "operator" && !operator) return yield* roleRequired("an active operator")
      if (role !== "administrator" && role !== "sponsor") return false
      if (role === "administrator" && !standing?.administrator && operator && review.institution_id !== null) {
        if (yield* lacksAdministrator(review, signed, excluded)) return true
      }
      if (standing === null) {
        return yield* roleRequired(`an effective membership as ${role} in the review's institution`)
      }
      yield* needs(standing, role)
      return false
    },
  )

  /** Fails where the person, who is not the author, is not independent of the author and all earlier signers. */
  const mustBeAnother = Effect.fnUntraced(function* (
    personId: PersonId,
    review: PolicyReviewRow,
    signed: ReadonlyArray<Signed>,
    besideAuthor: boolean,
  ) {
    const same = signed.find((one) => one.same)
    if (same !== undefined) return yield* yield* roles.fourEyes(personId, same.person_id)
    const bound = besideAuthor ? signed.find((one) => !one.independent)?.person_id : review.author
    if (bound !== undefined) return yield* yield* roles.fourEyes(personId, bound, ownersOf(review))
  })

  return { inRole, mustBeAnother }
}
