/** The layer of the contract's `Managed` (what it promises stands in schemas/api/Management.ts). */
import { Effect, Layer } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Caller, Managed } from "../../schemas/api/Management.ts"
import { RateLimited } from "../../schemas/problems/Floor.ts"
import { Callers } from "../../services/people/Callers.ts"
import { RateLimits } from "../../services/platform/RateLimits.ts"
import { peerOf } from "./floor/Peer.ts"
import { actsAs } from "./floor/RequestActor.ts"

/** Requests a minute and principal; 0: no limit. */
export interface ManagementRates {
  readonly writes: number
  readonly reads: number
}

const windowMillis = 60_000

export const managed = (rates: ManagementRates) =>
  Layer.effect(
    Managed,
    Effect.gen(function* () {
      const callers = yield* Callers
      const limits = yield* RateLimits

      const spend = Effect.fnUntraced(function* (principal: string, method: string) {
        const kind = method === "GET" || method === "HEAD" ? "reads" : "writes"
        const limit = rates[kind]
        if (limit === 0) return
        const seconds = yield* Effect.orDie(
          limits.spend({ key: `management.${kind}:${principal}`, limit, windowMillis }),
        )
        if (seconds > 0) {
          return yield* new RateLimited({ retry_after: seconds, limit, window_seconds: windowMillis / 1_000 })
        }
      })

      return Managed.of({
        management: Effect.fnUntraced(function* <E, R>(
          next: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
        ) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const caller = yield* callers.recognise(request.headers["authorization"], {
            userAgent: request.headers["user-agent"] ?? null,
            address: peerOf(request),
          })
          yield* actsAs(caller.principal)
          yield* spend(caller.principal, request.method)
          return yield* Effect.provideService(next, Caller, caller)
        }),
      })
    }),
  )
