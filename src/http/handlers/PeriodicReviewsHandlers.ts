/** Handlers of overdue reviews, and of what people who answer for an Access say about it. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { PeriodicReviewsApi } from "../../../schemas/api/PeriodicReviewsApi.ts"
import { AccessConfirmation } from "../../../schemas/identity/PeriodicReview.ts"
import { AccessRevocationRequest } from "../../../schemas/identity/RequestBodies.ts"
import { AccessConfirmations } from "../../../services/access/AccessConfirmations.ts"
import { OverdueReviews } from "../../../services/access/OverdueReviews.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { personIn } from "../auth/PersonAuth.ts"
import { keyed } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(PeriodicReviewsApi)

export const periodicReviews = HttpApiBuilder.group(
  Api,
  "periodic-reviews",
  Effect.fn(function* (handlers) {
    const confirmations = yield* AccessConfirmations
    const overdue = yield* OverdueReviews
    const requests = yield* Requests
    return handlers.handleAll({
      listOverdueReviews: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        const page = { limit: Number(query.limit), afterId: query.after_id ?? null }
        return yield* overdue.list(personId, params.institution_id, page).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      confirmAccess: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { access_id: accessId, institution_id: institutionId } = params
        return yield* keyed(
          { principal, payload, status: 201, success: AccessConfirmation },
          confirmations.confirm({ ...payload, accessId, institutionId, personId }),
        )
      }),
      proposeAccessRevocation: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { access_id: accessId, institution_id: institutionId } = params
        return yield* keyed(
          { principal, payload, status: 201, success: AccessRevocationRequest },
          requests.revocation({ ...payload, accessId, institutionId, personId }),
        )
      }),
    })
  }),
)
