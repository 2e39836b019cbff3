/** Handlers of `/v1/assertions`, and the layer of the contract's `Verifying`. */
import { Effect, Layer } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { AssertionsApi, Verifier, Verifying } from "../../../schemas/api/AssertionsApi.ts"
import { Assertions } from "../../../services/people/Assertions.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import { roleRequired } from "../../../services/people/Roles.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { spending } from "../auth/Limits.ts"
import { actsAs } from "../edge/RequestActor.ts"

const Api = HttpApi.make("bailiwick").add(AssertionsApi)

export interface VerifierClients {
  /** `issuer client_id` of each client that may (ASSERTION_CLIENTS). */
  readonly clients: ReadonlyArray<string>
  /** Requests of one issuer in a minute; 0: no limit. */
  readonly rate: number
}

/** Admits the clients that the configuration names, each for the subjects of the issuer that signed its token. */
export const verifying = ({ clients, rate }: VerifierClients) =>
  Layer.effect(
    Verifying,
    Effect.gen(function* () {
      const callers = yield* CallerAuthentication
      const spend = spending(yield* RateLimits, { reads: 0, writes: rate })
      return Verifying.of({
        verifier: Effect.fnUntraced(function* <E, R>(next: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const { clientId, issuer, via } = yield* callers.present(request.headers["authorization"])
          const principal = `service:${issuer} ${clientId}`
          if (via !== "service" || !clients.includes(`${issuer} ${clientId}`)) {
            return yield* roleRequired("a client of an issuer that ASSERTION_CLIENTS names")
          }
          yield* actsAs(principal)
          yield* spend(`issuer:${issuer}`, request)
          return yield* Effect.provideService(next, Verifier, { principal, issuer })
        }),
      })
    }),
  )

export const assertions = HttpApiBuilder.group(
  Api,
  "assertions",
  Effect.fn(function* (handlers) {
    const service = yield* Assertions
    return handlers.handleAll({
      startAssertion: Effect.fnUntraced(function* ({ payload }) {
        return yield* service.start(yield* Verifier, payload)
      }),
      checkAssertion: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* service.check(yield* Verifier, params.assertion_id, payload.proof)
      }),
    })
  }),
)
