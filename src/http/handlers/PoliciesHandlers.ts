/** Handlers of policy reviews. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { PoliciesApi } from "../../../schemas/api/PoliciesApi.ts"
import type { PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import { type Approval, PolicyReview } from "../../../schemas/identity/PolicyReview.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { type IdempotentResponse, keyed, keyedFenced } from "./IdempotentResponse.ts"
import { NeedsTransaction } from "../../../services/platform/database/FencedCommand.ts"
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

    /** Runs the command in two round trips, or in a transaction where the decision turns out to need one. */
    const decided = <E, R>(
      how: Pick<IdempotentResponse<PolicyReview, typeof PolicyReview.Encoded>, "principal" | "payload" | "dryRun">,
      command: Effect.Effect<PolicyReview, E | NeedsTransaction, R>,
    ) => {
      const asked = { ...how, status: 200, success: PolicyReview }
      return keyedFenced(asked, command).pipe(
        Effect.catchIf((error) => error instanceof NeedsTransaction, () => keyed(asked, command)),
        Effect.catchIf((error) => error instanceof NeedsTransaction, Effect.die),
      )
    }

    return handlers.handleAll({
      listPolicyReviews: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        const page = { personId, state: query.state, afterId: query.after_id ?? null, limit: Number(query.limit) }
        return yield* service.list(page).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      approvePolicyReview: Effect.fnUntraced(function* ({ params, payload, query }) {
        const { decision: approval, principal } = yield* decision(params.review_id, payload)
        return yield* decided({ principal, payload, dryRun: query.dry_run }, service.approve(approval))
      }),
      declinePolicyReview: Effect.fnUntraced(function* ({ params, payload }) {
        const { decision: refusal, principal } = yield* decision(params.review_id, payload)
        return yield* decided({ principal, payload }, service.decline(refusal))
      }),
    })
  }),
)
