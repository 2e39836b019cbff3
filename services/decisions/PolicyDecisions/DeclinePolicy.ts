/** A person who could sign a policy review declines it: one is enough. */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import { fence, isFenced, NeedsTransaction, one, transactionOnly } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { Projects } from "../../projects/Projects.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { mustBelong } from "./ApprovePolicy.ts"
import { inProjectsTurn, isOfProject, recording, viewOf } from "./Records.ts"
import { signing } from "./PolicySigner.ts"
import type { PolicyDecision } from "./LoadPolicyReview.ts"

const declined: Readonly<Record<RequestRow["kind"], "declined" | "revoked">> = {
  organization: "declined",
  website: "declined",
  access: "declined",
  enrollment: "revoked",
  launch: "declined",
  link: "declined",
  membership: "declined",
  authenticator_reset: "declined",
  access_revocation: "declined",
}

export const declining = Effect.gen(function* () {
  const { sql } = yield* Database
  const projects = yield* Projects
  const timers = yield* Timers
  const recorded = yield* recording
  const sign = yield* signing
  const { change } = requestRows(sql)

  return Effect.fn("PolicyDecisions.decline")(function* (decision: PolicyDecision) {
    yield* inProjectsTurn(sql, decision.reviewId)
    const { keep, moved, personId, reason, request, review, role, signed } = yield* sign(decision)
    const ofProject = isOfProject(request)
    if ((yield* isFenced) && ofProject) return yield* Effect.fail(new NeedsTransaction())
    if (ofProject && moved) yield* mustBelong

    const now = new Date(yield* Clock.currentTimeMillis)
    yield* keep(false)
    yield* fence(
      sql,
      one((earlier) =>
        sql`update policy_reviews set state = 'declined', decided_at = ${now}, declined_by = ${personId},
            declined_role = ${role}, decline_reason = ${reason}
          where id = ${review.id}::uuid and state = 'open' and ${earlier} returning 1`
      ),
    )
    if (ofProject) yield* transactionOnly(projects.end(request, { state: "declined", personId, reason }))
    // Only another holder of the invitation's link was declined: the invitation itself stays valid.
    else if (review.kind !== "enrollment_claim") {
      yield* change(request, { state: declined[request.kind] })
      yield* timers.set(request.id, [])
    }
    yield* recorded("declined", decision, review)
    return viewOf({ ...review, state: "declined" }, signed)
  })
})
