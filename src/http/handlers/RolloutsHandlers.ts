/** Handlers of rollouts, for operators. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { RolloutsApi } from "../../../schemas/api/RolloutsApi.ts"
import { RolloutStanding } from "../../../schemas/identity/RolloutView.ts"
import { OperatorRollouts } from "../../../services/operations/OperatorRollouts.ts"
import { personOf, recently } from "../auth/PersonAuth.ts"
import { keyed } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(RolloutsApi)

export const rollouts = HttpApiBuilder.group(
  Api,
  "rollouts",
  Effect.fn(function* (handlers) {
    const held = yield* OperatorRollouts
    return handlers.handleAll({
      listRollouts: Effect.fnUntraced(function* ({ query }) {
        const page = { limit: Number(query.limit), afterId: query.after_id }
        return yield* held.list((yield* personOf).personId, page).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      decideRollout: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        const stepUp = yield* recently
        return yield* keyed(
          { principal, payload, status: 200, success: RolloutStanding },
          held.set({ personId, projectId: params.project_id, stepUp, ...payload }),
        )
      }),
    })
  }),
)
