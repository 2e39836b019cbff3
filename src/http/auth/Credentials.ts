/** The layers of the contract's `Authenticated` and `Presented` (what they promise stands in schemas/api/Credentials.ts). */
import { Effect, Layer, Predicate } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Authenticated, Credential, Presented, Principal, sessionCookie } from "../../../schemas/api/Credentials.ts"
import { CsrfRejected, InvalidCredentials } from "../../../schemas/problems/Floor.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { passesCsrf } from "./Csrf.ts"
import { respond } from "../edge/Failures.ts"
import { accepted, actsAs } from "../edge/RequestActor.ts"
import { AccountLimits } from "./Limits.ts"

/** Where a request of this scheme finds its credential; the Authorization header decides where it is there. */
const present = Effect.fnUntraced(function* (scheme: "bearer" | "cookie") {
  const { cookies, headers } = yield* HttpServerRequest.HttpServerRequest
  const authorization = headers["authorization"]
  if ((authorization === undefined) === (scheme === "bearer")) return yield* new InvalidCredentials()
  return yield* (yield* Principals).present({ authorization, cookie: cookies[sessionCookie] })
})

const guard = Effect.fnUntraced(function* (publicUrl: URL) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!passesCsrf(request, publicUrl)) return yield* new CsrfRejected()
})

const isSafe = Effect.map(HttpServerRequest.HttpServerRequest, ({ method }) => method === "GET" || method === "HEAD")

type Next<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

// What a handler fails with arrives in a wrapper of the contract's, so that it is not taken for a refused credential.
const isRefusal = (error: unknown): boolean =>
  error instanceof InvalidCredentials || (Predicate.hasProperty(error, "error") && isRefusal(error.error))

// What is beyond a limit is answered here: as a failure it would be taken for a refused credential, and the next scheme
// would be tried, whose refusal would be the answer.

/** Whoever is recognised is named in the audit, even where the request fails later. */
const recognise = (principals: Principals["Service"], credential: Credential["Service"]) =>
  Effect.tap(principals.authenticate(credential), ({ accountId }) => actsAs(`account:${accountId}`))

/** `publicUrl` is the origin that browsers know us by. */
export const authenticated = (publicUrl: URL) =>
  Layer.effect(
    Authenticated,
    Effect.gen(function* () {
      const principals = yield* Principals
      const limits = yield* AccountLimits
      const by = (scheme: "bearer" | "cookie") =>
        Effect.fnUntraced(function* <E>(next: Next<E, Principal>) {
          const credential = yield* Effect.provideService(present(scheme), Principals, principals)
          const principal = yield* recognise(principals, credential)
          if (scheme === "cookie") yield* guard(publicUrl)
          const beyond = yield* limits.count(principal.accountId, yield* HttpServerRequest.HttpServerRequest)
          if (beyond !== undefined) return yield* respond(beyond)
          return yield* Effect.provideService(next, Principal, principal)
        })
      return Authenticated.of({ bearer: by("bearer"), cookie: by("cookie") })
    }),
  )

export const presented = (publicUrl: URL) =>
  Layer.effect(
    Presented,
    Effect.gen(function* () {
      const principals = yield* Principals
      const limits = yield* AccountLimits
      const by = (scheme: "bearer" | "cookie") =>
        Effect.fnUntraced(function* <E>(next: Next<E, Credential>) {
          const credential = yield* Effect.provideService(present(scheme), Principals, principals)
          if (scheme === "cookie" && !(yield* isSafe)) {
            yield* recognise(principals, credential)
            yield* guard(publicUrl)
          }
          const beyond = yield* limits.countFor(credential, yield* HttpServerRequest.HttpServerRequest)
          if (beyond !== undefined) return yield* respond(beyond)
          return yield* next.pipe(
            Effect.provideService(Credential, credential),
            Effect.tap(accepted),
            // A request that does not decode never reached the statement that would have refused it.
            Effect.tapError((error) =>
              isRefusal(error) ? Effect.sync(() => limits.forget(credential)) : recognise(principals, credential)
            ),
          )
        })
      return Presented.of({ bearer: by("bearer"), cookie: by("cookie") })
    }),
  )
