/** Handlers of policy reviews. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { PoliciesApi } from "../../../schemas/api/PoliciesApi.ts"
import type { PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { type Approval, PolicyReview } from "../../../schemas/identity/PolicyReview.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { decidedOnce } from "./DecidedOnce.ts"
import { approving, personIn, personOf } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(PoliciesApi)

export const policies = HttpApiBuilder.group(
  Api,
  "policies",
  Effect.fn(function* (handlers) {
    const service = yield* PolicyDecisions

    const decision = Effect.fnUntraced(function* (reviewId: PolicyReviewId, { reason, role }: Approval) {
      const { personId, principal } = yield* personIn
      return { principal, decision: { personId, reviewId, role, reason, stepUp: yield* approving } }
    })

    return handlers.handleAll({
      listPolicyReviews: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        const { state } = query
        const page = { personId, afterId: query.after_id ?? null, limit: Number(query.limit) }
        const own = state === "decided_by_me" || state === "signed_by_me"
        const listed = own
          ? service.decidedBy({ ...page, open: state === "signed_by_me" })
          : service.list({ ...page, state })
        return yield* listed.pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      getPolicyReview: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personOf
        return yield* service.one(personId, params.review_id).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      approvePolicyReview: Effect.fnUntraced(function* ({ params, payload, query }) {
        const { decision: approval, principal } = yield* decision(params.review_id, payload)
        return yield* decidedOnce(
          { principal, payload, success: PolicyReview, dryRun: query.dry_run },
          service.approve(approval),
        )
      }),
      declinePolicyReview: Effect.fnUntraced(function* ({ params, payload }) {
        const { decision: refusal, principal } = yield* decision(params.review_id, payload)
        return yield* decidedOnce({ principal, payload, success: PolicyReview }, service.decline(refusal))
      }),
    })
  }),
)
