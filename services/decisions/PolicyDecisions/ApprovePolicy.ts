/**
 * A person signs a policy review. Each signature writes the review's row, so that of two concurrent signatures the
 * second sees the first; the last one carries the request out.
 */
import { Clock, Effect } from "effect"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import {
  fence,
  isFenced,
  NeedsTransaction,
  newRow,
  one,
  transactionOnly,
} from "../../platform/database/FencedCommand.ts"
import { heldMeanwhile, whileOpen } from "../../platform/database/Installation.ts"
import { Links } from "../../links/Links.ts"
import { Projects } from "../../projects/Projects.ts"
import { Enrollments } from "../Enrollments.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"
import { Requests } from "../Requests.ts"
import { inProjectsTurn, recording, viewOf } from "./Records.ts"
import { type Signature, signing } from "./PolicySigner.ts"
import type { PolicyDecision } from "./LoadPolicyReview.ts"

/** Whether the request only takes rights away: such a request is never held. */
const takesAway = ({ fields, kind }: RequestRow) =>
  kind === "access_revocation" ||
  kind === "membership" && (fields["state"] === "suspended" || fields["state"] === "ended")

/**
 * Whether carrying out the request is open-ended: jobs, owners and rollouts of a project; all ids of a person, or
 * all authenticators.
 */
const isOpenEnded = ({ kind }: RequestRow) =>
  kind === "website" || kind === "launch" || kind === "link" || kind === "authenticator_reset"

/**
 * Refuses an approval in a suspended institution, also by an operator, and one for a project that left the institution.
 */
const mustStand = Effect.fnUntraced(function* ({ institution, moved, review }: Signature) {
  if (review.institution_id === null) return
  if (institution?.status !== "active") {
    return yield* new InvalidState({ state: institution?.status ?? "removed", allowed: ["active"] })
  }
  if (moved) yield* mustBelong
})

/** The refusal of a decision about a project that the directory has moved to another institution. */
export const mustBelong = Effect.suspend(() =>
  Effect.fail(
    new InvalidState({ state: "moved", allowed: ["registered", "launch_proposed", "launched", "held"] }),
  )
)

/** Carries out a fully signed request, by the service of its kind. */
const carryingOut = Effect.gen(function* () {
  const enrollments = yield* Enrollments
  const links = yield* Links
  const projects = yield* Projects
  const requests = yield* Requests

  return (decision: Decision) => {
    switch (decision.request.kind) {
      case "enrollment":
        return enrollments.carryOut(decision)
      case "website":
      case "launch":
        return transactionOnly(projects.carryOut(decision))
      case "link":
        return transactionOnly(links.carryOut(decision))
      case "authenticator_reset":
        return transactionOnly(requests.resetAuthenticators(decision))
      default:
        return requests.carryOut(decision)
    }
  }
})

export const approving = Effect.gen(function* () {
  const { sql } = yield* Database
  const carryOut = yield* carryingOut
  const recorded = yield* recording
  const sign = yield* signing

  const signature = newRow(sql, "policy_approvals", {
    review_id: "uuid",
    author: "text",
    role: "text",
    person_id: "text",
    stands_in: "boolean",
    reason: "text",
    approved_at: "timestamptz",
  })

  return Effect.fn("PolicyDecisions.approve")(function* (decision: PolicyDecision) {
    yield* inProjectsTurn(sql, decision.reviewId)
    const asked = yield* sign(decision)
    const { held, missing, personId, reason, request, review, role, signed, standsIn } = asked
    if ((yield* isFenced) && isOpenEnded(request)) return yield* Effect.fail(new NeedsTransaction())
    if (held && !takesAway(request)) return yield* heldMeanwhile()
    yield* mustStand(asked)

    const now = new Date(yield* Clock.currentTimeMillis)
    const at = now.toISOString()
    const last = missing.length === 0
    yield* asked.keep(true)
    if (!takesAway(request)) yield* fence(sql, whileOpen(sql))
    yield* fence(
      sql,
      signature({
        review_id: review.id,
        author: review.author,
        role,
        person_id: personId,
        stands_in: standsIn,
        reason,
        approved_at: at,
      }),
    )
    yield* fence(
      sql,
      one((earlier) =>
        sql`update policy_reviews set state = ${last ? "applied" : "open"}, decided_at = ${last ? now : null}
          where id = ${review.id}::uuid and state = 'open' and ${earlier} returning 1`
      ),
    )
    if (last) {
      yield* carryOut({ request, review, approvedBy: [...signed.map(({ person_id }) => person_id), personId] })
    }
    yield* recorded("approved", decision, review)
    const given = [...signed, { role, person_id: personId, approved_at: at }]
    return viewOf({ ...review, state: last ? "applied" : "open" }, given)
  })
})
