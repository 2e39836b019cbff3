/** The audit records of policy reviews, their view, and the lock that orders the decisions about one project. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { PolicyReviewId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { PolicyReview } from "../../../schemas/identity/PolicyReview.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { isFenced } from "../../platform/database/FencedCommand.ts"
import { type PolicyReviewRow, type Signature, stamp } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"
import type { PolicyDecision } from "./LoadPolicyReview.ts"
import { lockProject } from "../../platform/database/AdvisoryLocks.ts"

export const recording = Effect.map(
  Audit,
  (audit) => (action: string, { personId, role }: PolicyDecision, review: PolicyReviewRow) =>
    audit.append({
      action: `policy-review.${action}`,
      actor: `person:${personId}`,
      subject: `policy-review:${review.id}`,
      outcome: "done",
      decision: true,
      details: { kind: review.kind, role, institution: review.institution_id, project: review.project_id },
    }),
)

type Given = Omit<Signature, "approved_at"> & { readonly approved_at: string }

/** The view of a review in answers; the signatures may be in any order. */
export const viewOf = (row: PolicyReviewRow, signed: ReadonlyArray<Given>): PolicyReview => ({
  review_id: row.id,
  state: row.state,
  required_roles: row.required_roles,
  approvals: signed
    .map(({ approved_at, person_id, role }) => ({ role, person_id, approved_at: stamp(new Date(approved_at)) }))
    .sort((a, b) => a.approved_at < b.approved_at || a.approved_at === b.approved_at && a.role < b.role ? -1 : 1),
})

export const isOfProject = ({ kind }: RequestRow) => kind === "website" || kind === "launch"

/**
 * In a transaction, lets decisions about one project run one after another: each reads roles under shared locks and
 * then changes the project's row, so two at once would deadlock.
 */
export const inProjectsTurn = Effect.fnUntraced(function* (sql: PgClient.PgClient, reviewId: PolicyReviewId) {
  if ((yield* isFenced) || !isUuid(reviewId)) return
  const [review] = yield* sql<{ project_id: ProjectId | null }>`
    select project_id from policy_reviews where id = ${reviewId}::uuid`
  if (review === undefined || review.project_id === null) return
  yield* lockProject(sql, review.project_id)
})
