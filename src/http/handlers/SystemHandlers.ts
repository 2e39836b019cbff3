/** Handlers of the probes. `/ready` checks anew at each request, so it recovers by itself. */
import { Clock, Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { apiVersion } from "../../../schemas/api/Api.ts"
import { SystemApi } from "../../../schemas/api/SystemApi.ts"
import { Readiness } from "../../../services/platform/observability/Readiness.ts"

const Api = HttpApi.make("bailiwick").add(SystemApi)

export const system = HttpApiBuilder.group(
  Api,
  "system",
  Effect.fn(function* (handlers) {
    const readiness = yield* Readiness
    const startedAt = new Date(yield* Clock.currentTimeMillis).toISOString()
    return handlers.handleAll({
      health: () => Effect.succeed({ status: "live" as const, version: apiVersion, started_at: startedAt }),
      ready: () => readiness.look,
    })
  }),
)
