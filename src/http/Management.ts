/** The layer of the contract's `Managed` (what it promises stands in schemas/api/Management.ts). */
import { Effect, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Caller, Managed } from "../../schemas/api/Management.ts"
import type { AccessToken } from "../../services/people/AccessTokens.ts"
import { Callers, type Found } from "../../services/people/Callers.ts"
import type { Origin } from "../../services/people/Sightings.ts"
import { RateLimits } from "../../services/platform/RateLimits.ts"
import { Clients } from "./floor/Clients.ts"
import { type HotRead, json } from "./floor/HotReads.ts"
import { accepts } from "./floor/Media.ts"
import { actsAs } from "./floor/RequestActor.ts"
import { type Rates, spending } from "./Limits.ts"

/** Where a request came from, as far as its connection and headers say. */
const origins = Effect.map(Clients, ({ addressOf }) => (request: HttpServerRequest.HttpServerRequest): Origin => ({
  userAgent: request.headers["user-agent"] ?? null,
  address: addressOf(request),
}))

export const managed = (rates: Rates) =>
  Layer.effect(
    Managed,
    Effect.gen(function* () {
      const callers = yield* Callers
      const originOf = yield* origins
      const spend = spending(yield* RateLimits, rates)
      return Managed.of({
        management: Effect.fnUntraced(function* <E, R>(
          next: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
        ) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const caller = yield* callers.recognise(request.headers["authorization"], originOf(request))
          yield* actsAs(caller.principal)
          yield* spend(caller.principal, request)
          return yield* Effect.provideService(next, Caller, caller)
        }),
      })
    }),
  )

/**
 * A read of one's own that goes the short way: a person's token is recognised in the statement that reads, and all that
 * `managed` does besides is done here. For a query, and for a service, it knows no answer.
 */
export const hotOwn = (
  rates: Rates,
  read: (token: AccessToken) => Effect.Effect<{ readonly found: Found | undefined; readonly body: string }>,
) =>
  Effect.gen(function* () {
    const callers = yield* Callers
    const originOf = yield* origins
    const spend = spending(yield* RateLimits, rates)
    const own: HotRead = Effect.fnUntraced(function* (request) {
      const { accept, authorization } = request.headers
      if (authorization === undefined || request.url.includes("?") || !accepts(accept, json)) return undefined
      const token = yield* callers.present(authorization)
      if (token.via === "service") return undefined
      const { body, found } = yield* read(token)
      const caller = yield* callers.seen(token, found, originOf(request))
      yield* actsAs(caller.principal)
      yield* spend(caller.principal, request)
      return HttpServerResponse.text(body, { contentType: "application/json" })
    })
    return own
  })
