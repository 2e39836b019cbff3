/**
 * Layers of the contract's `Authenticated` and `Presented` (described in schemas/api/CredentialsApi.ts), and the
 * authentication of fast reads.
 */
import { Effect, Layer, Predicate } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Authenticated, Credential, Presented, Principal, sessionCookie } from "../../../schemas/api/CredentialsApi.ts"
import { CsrfRejected, InvalidCredentials, type RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { embedTokenOf } from "../../../services/console/EmbedLinks.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { type ConsoleAccess, ConsoleAuth } from "./ConsoleAuth.ts"
import { type EmbedAccess, EmbedAuth } from "./EmbedAuth.ts"
import { passesCsrf } from "./Csrf.ts"
import { respond } from "../edge/ErrorMapping.ts"
import type { Presenting } from "../edge/FastReads.ts"
import { accepted, actsAs } from "../edge/RequestActor.ts"
import { AccountLimits, type Accounts } from "./Limits.ts"

interface Sessions {
  readonly byConsole: ConsoleAccess
  readonly byEmbed: EmbedAccess
}

const sessionsOf = Effect.all({ byConsole: ConsoleAuth, byEmbed: EmbedAuth })

/**
 * The request's credential of this scheme, and the check whether a request with this credential may write. A request
 * with an Authorization header is judged by that header alone.
 */
const present = Effect.fnUntraced(function* (scheme: "bearer" | "cookie", { byConsole, byEmbed }: Sessions) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { cookies, headers } = request
  const authorization = headers["authorization"]
  if ((authorization === undefined) === (scheme === "bearer")) return yield* new InvalidCredentials()
  if (byEmbed.covers(authorization)) return { credential: yield* byEmbed.credential(request), mayWrite: Effect.void }
  const own = byConsole.covers(request) ? yield* byConsole.credential(request) : null
  const credential = own ?? (yield* (yield* Principals).present({ authorization, cookie: cookies[sessionCookie] }))
  return { credential, mayWrite: own === null ? Effect.void : byConsole.mayWrite(request) }
})

/**
 * Presents the request's credential again, while its answer lasts. The effect holds no more of the request than its
 * credentials.
 */
export const presentAgain = Effect.gen(function* () {
  const principals = yield* Principals
  const byConsole = yield* ConsoleAuth
  return (request: HttpServerRequest.HttpServerRequest) => {
    const { cookies, headers } = request
    const sent = principals.present({ authorization: headers["authorization"], cookie: cookies[sessionCookie] })
    if (!byConsole.covers(request)) return sent
    return Effect.flatMap(
      byConsole.later.credential(request),
      (own): typeof sent => own === null ? sent : Effect.succeed(own),
    )
  }
})

const guard = Effect.fnUntraced(function* (publicUrl: URL) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!passesCsrf(request, publicUrl)) return yield* new CsrfRejected()
})

const isSafe = Effect.map(HttpServerRequest.HttpServerRequest, ({ method }) => method === "GET" || method === "HEAD")

type Next<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

// A handler's failure arrives in a wrapper of the contract, which keeps it from being taken for a refused credential.
const isRefusal = (error: unknown): boolean =>
  error instanceof InvalidCredentials || (Predicate.hasProperty(error, "error") && isRefusal(error.error))

// A request beyond a limit is answered here, not failed: HttpApi would take the failure for a refused credential, try
// the next scheme, and answer with that scheme's refusal.

/**
 * Authenticates the credential and sets the request's actor, so that the audit names it even where the request fails
 * later.
 */
const recognise = (principals: Principals["Service"], credential: Credential["Service"]) =>
  Effect.tap(principals.authenticate(credential), ({ accountId }) => actsAs(`account:${accountId}`))

/** `publicUrl` is the origin under which browsers reach this program. */
export const authenticated = (publicUrl: URL) =>
  Layer.effect(
    Authenticated,
    Effect.gen(function* () {
      const principals = yield* Principals
      const limits = yield* AccountLimits
      const sessions = yield* sessionsOf
      const by = (scheme: "bearer" | "cookie") =>
        Effect.fnUntraced(function* <E>(next: Next<E, Principal>) {
          const { credential, mayWrite } = yield* Effect.provideService(
            present(scheme, sessions),
            Principals,
            principals,
          )
          const principal = yield* recognise(principals, credential)
          if (scheme === "cookie") yield* guard(publicUrl)
          yield* mayWrite
          const outside = yield* sessions.byEmbed.refusal(yield* HttpServerRequest.HttpServerRequest)
          if (outside !== undefined) return yield* respond(outside)
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
      const sessions = yield* sessionsOf
      const by = (scheme: "bearer" | "cookie") =>
        Effect.fnUntraced(function* <E>(next: Next<E, Credential>) {
          const { credential, mayWrite } = yield* Effect.provideService(
            present(scheme, sessions),
            Principals,
            principals,
          )
          if (scheme === "cookie" && !(yield* isSafe)) {
            yield* recognise(principals, credential)
            yield* guard(publicUrl)
            yield* mayWrite
          }
          const outside = yield* sessions.byEmbed.refusal(yield* HttpServerRequest.HttpServerRequest)
          if (outside !== undefined) return yield* respond(outside)
          const beyond = yield* limits.countFor(credential, yield* HttpServerRequest.HttpServerRequest)
          if (beyond !== undefined) return yield* respond(beyond)
          return yield* next.pipe(
            Effect.provideService(Credential, credential),
            Effect.tap(accepted),
            // A request that does not decode failed before the statement that checks the credential: check the
            // credential here.
            Effect.tapError((error) =>
              isRefusal(error) ? Effect.sync(() => limits.forget(credential)) : recognise(principals, credential)
            ),
          )
        })
      return Presented.of({ bearer: by("bearer"), cookie: by("cookie") })
    }),
  )

/**
 * The answer of a fast read of the mail API. `read` gets the credential, which its own statement checks, once the limits
 * of the account are applied. Where it fails, the ordinary path runs the request again and answers, except for a
 * refused credential.
 */
export const answerAccount = <Asked extends Presenting>(
  principals: Principals["Service"],
  limits: Accounts,
  read: (
    credential: Credential["Service"],
    asked: Asked,
  ) => Effect.Effect<string, InvalidCredentials | { readonly _tag: string }>,
) =>
(asked: Asked) =>
  // An embedded session takes the ordinary path, which knows where it may go.
  embedTokenOf(asked.authorization) !== null
    ? Effect.succeed(undefined)
    : Effect.flatMap(principals.present({ authorization: asked.authorization, cookie: undefined }), (credential) => {
      const { request } = asked
      const answered = Effect.catch(
        read(credential, asked),
        (error): Effect.Effect<undefined, InvalidCredentials> => {
          if (error._tag === "InvalidCredentials") {
            limits.forget(credential)
            return Effect.fail(error as InvalidCredentials)
          }
          limits.counted(request)
          return Effect.succeed(undefined)
        },
      )
      return Effect.flatMap(
        limits.countFor(credential, request),
        (beyond): Effect.Effect<string | undefined, InvalidCredentials | RateLimited> =>
          beyond === undefined ? answered : Effect.fail(beyond),
      )
    })
