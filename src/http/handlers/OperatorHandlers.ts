/** Handlers of the operator's plane. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "../../../schemas/api/OperatorApi.ts"
import { Findings } from "../../doctor/Findings.ts"
import { personOf } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(OperatorApi)

export const operator = HttpApiBuilder.group(
  Api,
  "operator",
  Effect.fn(function* (handlers) {
    const findings = yield* Findings
    return handlers.handleAll({
      doctor: Effect.fnUntraced(function* () {
        return yield* findings.examine((yield* personOf).personId).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
    })
  }),
)
