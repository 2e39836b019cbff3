/** The layer of the contract's `Managed` (what it promises stands in schemas/api/Management.ts). */
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { Caller, Managed, RecognisedByCommand } from "../../../schemas/api/Management.ts"
import type { AccessToken } from "../../../services/people/AccessTokens.ts"
import { Callers, type Found, NotRecognised } from "../../../services/people/Callers.ts"
import type { Origin } from "../../../services/people/Sightings.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { Clients } from "../edge/Clients.ts"
import { type HotRead, json } from "../edge/HotReads.ts"
import { accepts } from "../edge/Media.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { Presumption } from "./Presumption.ts"
import { type Rates, spending } from "./Limits.ts"

/** Where a request came from, as far as its connection and headers say. */
const origins = Effect.map(Clients, ({ addressOf }) => (request: HttpServerRequest.HttpServerRequest): Origin => ({
  userAgent: request.headers["user-agent"] ?? null,
  address: addressOf(request),
}))

type Request = HttpServerRequest.HttpServerRequest
type Next<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
type ForEndpoint = { readonly endpoint: HttpApiEndpoint.Top }

const isNotRecognised = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect instanceof NotRecognised)

export const managed = (rates: Rates) =>
  Layer.effect(
    Managed,
    Effect.gen(function* () {
      const callers = yield* Callers
      const originOf = yield* origins
      const spend = spending(yield* RateLimits, rates)

      const serve = Effect.fnUntraced(
        function* <E, R>(next: Next<E, R>, caller: Caller["Service"], request: Request) {
          yield* actsAs(caller.principal)
          yield* spend(caller.principal, request)
          return yield* Effect.provideService(next, Caller, caller)
        },
      )

      const recognised = Effect.fnUntraced(function* <E, R>(next: Next<E, R>, request: Request) {
        const caller = yield* callers.recognise(request.headers["authorization"], originOf(request))
        return yield* serve(next, caller, request)
      })

      /**
       * Lets the command recognise the caller. Where it came to nothing before it had, the caller is asked for now, so that
       * a refused token is told first; and where the caller is another person by now, the request begins anew as theirs.
       */
      const byCommand = Effect.fnUntraced(function* <E, R>(next: Next<E, R>, request: Request) {
        const presumed = yield* callers.presume(request.headers["authorization"], originOf(request))
        if (presumed === null) return yield* recognised(next, request)
        const exit = yield* next.pipe(
          Effect.provideService(Presumption, presumed),
          (admitted) => serve(admitted, presumed.caller, request),
          Effect.exit,
        )
        if (presumed.isRecognised() || Exit.hasInterrupts(exit)) return yield* exit
        if (Exit.isSuccess(exit)) return yield* Effect.die(new Error(`${request.url}: nobody was recognised`))
        const caller = yield* callers.recognise(request.headers["authorization"], originOf(request))
        return yield* isNotRecognised(exit.cause) ? serve(next, caller, request) : exit
      })

      return Managed.of({
        management: Effect.fnUntraced(function* <E, R>(next: Next<E, R>, { endpoint }: ForEndpoint) {
          const request = yield* HttpServerRequest.HttpServerRequest
          return yield* Context.get(endpoint.annotations, RecognisedByCommand)
            ? byCommand(next, request)
            : recognised(next, request)
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
