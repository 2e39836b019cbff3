/** The layer of the contract's `Managed` (described in schemas/api/ManagementApi.ts). */
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { Caller, Managed, RecognisedByCommand } from "../../../schemas/api/ManagementApi.ts"
import { AuditorReadsOnly } from "../../../schemas/problems/IdentityProblems.ts"
import type { AccessToken } from "../../../services/people/AccessTokens.ts"
import { CallerAuthentication, type Found, NotRecognised } from "../../../services/people/CallerAuthentication.ts"
import type { Origin } from "../../../services/people/SessionActivity.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { Clients } from "../edge/Clients.ts"
import type { Presenting } from "../edge/FastReads.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { ConsoleAuth } from "./ConsoleAuth.ts"
import { Presumption } from "./Presumption.ts"
import { type Rates, spending } from "./Limits.ts"

/** The user agent and client address of a request, as far as they are known. */
const origins = Effect.map(Clients, ({ addressOf }) => (request: HttpServerRequest.HttpServerRequest): Origin => ({
  userAgent: request.headers["user-agent"] ?? null,
  address: addressOf(request),
}))

type Request = HttpServerRequest.HttpServerRequest

/** The caller of a request, by its Authorization header or by its session of the console. */
const recognising = Effect.gen(function* () {
  const callers = yield* CallerAuthentication
  const byConsole = yield* ConsoleAuth
  const originOf = yield* origins
  const authorizationOf = (request: Request, { authorization }: Pick<typeof byConsole, "authorization"> = byConsole) =>
    byConsole.covers(request) ? authorization(request) : Effect.succeed(request.headers["authorization"])
  /** The caller, while the answer to the request lasts. */
  const laterCallerOf = (request: Request) =>
    Effect.flatMap(
      authorizationOf(request, byConsole.later),
      (authorization) => callers.recognise(authorization, originOf(request)),
    )
  return { authorizationOf, laterCallerOf }
})

/** Tells, of a request that is answered for hours, whether the same caller would still be let in. */
export const callerStanding = Effect.map(
  recognising,
  ({ laterCallerOf }) => (request: Request, principal: string) =>
    laterCallerOf(request).pipe(
      Effect.map((caller) => caller.principal === principal ? "admitted" as const : "refused" as const),
      Effect.catchTag("DependencyUnavailable", () => Effect.succeed("undecided" as const)),
      Effect.orElseSucceed(() => "refused" as const),
    ),
)

/** Methods by which no operation of the contract changes anything. */
const changesNothing = new Set(["GET", "HEAD"])

/** Refuses an auditor's request that would change something. */
const refuseAuditor = ({ auditor }: Caller["Service"], { method }: Request) =>
  auditor && !changesNothing.has(method) ? Effect.fail(new AuditorReadsOnly()) : Effect.void

type Next<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
type ForEndpoint = { readonly endpoint: HttpApiEndpoint.Top }

const isNotRecognised = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect instanceof NotRecognised)

export const managed = (rates: Rates) =>
  Layer.effect(
    Managed,
    Effect.gen(function* () {
      const callers = yield* CallerAuthentication
      const originOf = yield* origins
      const spend = spending(yield* RateLimits, rates)
      const { authorizationOf } = yield* recognising

      const serve = Effect.fnUntraced(
        function* <E, R>(next: Next<E, R>, caller: Caller["Service"], request: Request) {
          yield* actsAs(caller.principal)
          yield* spend(caller.principal, request)
          yield* refuseAuditor(caller, request)
          return yield* Effect.provideService(next, Caller, caller)
        },
      )

      const recognised = Effect.fnUntraced(
        function* <E, R>(next: Next<E, R>, request: Request, authorization: string | undefined) {
          const caller = yield* callers.recognise(authorization, originOf(request))
          return yield* serve(next, caller, request)
        },
      )

      /**
       * Lets the command's own statement recognise the caller. Where the command ended without doing so, the caller is
       * recognised now: a refused token, or the role of an auditor, takes precedence over the command's failure, and a
       * request whose token now belongs to another person runs again as that person.
       */
      const byCommand = Effect.fnUntraced(
        function* <E, R>(next: Next<E, R>, request: Request, authorization: string | undefined) {
          const presumed = yield* callers.presume(authorization, originOf(request))
          if (presumed === null) return yield* recognised(next, request, authorization)
          const exit = yield* next.pipe(
            Effect.provideService(Presumption, presumed),
            (admitted) => serve(admitted, presumed.caller, request),
            Effect.exit,
          )
          if (presumed.isRecognised() || Exit.hasInterrupts(exit)) return yield* exit
          if (Exit.isSuccess(exit)) {
            return yield* Effect.die(new Error(`${request.url}: the command recognised no caller`))
          }
          const caller = yield* callers.recognise(authorization, originOf(request))
          yield* refuseAuditor(caller, request)
          return yield* isNotRecognised(exit.cause) ? serve(next, caller, request) : exit
        },
      )

      return Managed.of({
        management: Effect.fnUntraced(function* <E, R>(next: Next<E, R>, { endpoint }: ForEndpoint) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const authorization = yield* authorizationOf(request)
          return yield* Context.get(endpoint.annotations, RecognisedByCommand)
            ? byCommand(next, request, authorization)
            : recognised(next, request, authorization)
        }),
      })
    }),
  )

/**
 * The answer of a fast read of the caller's own data: the reading statement also recognises a person's token, and the
 * rest of `managed` is done here. Requests of services take the ordinary path.
 */
export const answerPerson = (
  rates: Rates,
  read: (token: AccessToken) => Effect.Effect<{ readonly found: Found | undefined; readonly body: string }>,
) =>
  Effect.gen(function* () {
    const callers = yield* CallerAuthentication
    const originOf = yield* origins
    const spend = spending(yield* RateLimits, rates)
    return Effect.fnUntraced(function* ({ authorization, request }: Presenting) {
      const token = yield* callers.present(authorization)
      if (token.via === "service") return undefined
      const { body, found } = yield* read(token)
      const caller = yield* callers.seen(token, found, originOf(request))
      yield* actsAs(caller.principal)
      yield* spend(caller.principal, request)
      return body
    })
  })
