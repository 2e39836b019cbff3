/** The fences under which the judgement of a signature holds. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { operatorRow, standingIn } from "../../people/Roles.ts"
import { fence, isFenced, one, unchanged } from "../../platform/database/FencedCommand.ts"
import type { PolicyReviewRow } from "../../requests/PolicyReviews.ts"
import { institutionIn, institutionRow, type Loaded, type PolicyDecision, projectRow } from "./LoadPolicyReview.ts"

/**
 * The fence on the institution. An approver of the institution may sign its first invitation, so while none was sent
 * a signature writes the institution's row: of two at once only one is the first.
 */
const ofInstitution = (
  sql: PgClient.PgClient,
  loaded: Loaded,
  { institution_id, kind }: PolicyReviewRow,
  personId: PersonId,
  approves: boolean,
) => {
  const institution = institutionIn(loaded)
  return approves && kind === "enrollment" && !loaded.sent && institution !== null
    ? one((earlier) =>
      sql`update institutions set updated_at = updated_at
        where id = ${institution_id} and xmin = ${institution.written}::xid and ${earlier} returning 1`
    )
    : unchanged(sql, institutionRow(sql, personId, sql`${institution_id}`), loaded.institution)
}

/** Adds the fences; the review stays locked and open. */
export const keepJudgement = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
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
    yield* fence(sql, ofInstitution(sql, loaded, review, personId, approves))
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
