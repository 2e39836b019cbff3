/**
 * Fast paths for frequent reads, by route template. They skip the router and the contract's decoders, which cost about
 * as much as the read itself, but run inside the HTTP edge like every request. A fast read handles a plain request with
 * a credential and the usual queries; for any other it returns `undefined`, and the request takes the ordinary path.
 */
import { Context, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Credential } from "../../../schemas/api/CredentialsApi.ts"
import type { DependencyUnavailable, InvalidCredentials, RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import type { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import type { Principals } from "../../../services/authentication/Principals.ts"
import type { Accounts } from "../auth/Limits.ts"
import { accepts } from "./MediaTypes.ts"

export type HotRead = (
  request: HttpServerRequest.HttpServerRequest,
  params: Readonly<Record<string, string | undefined>>,
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse | undefined,
  InvalidCredentials | InvalidToken | RateLimited | DependencyUnavailable
>

export class FastReads
  extends Context.Reference<Map<string, HotRead>>("bailiwick/http/edge/FastReads", { defaultValue: () => new Map() }) {}

/** The media type of fast reads. */
export const json = new Set(["application/json"])

/**
 * A fast read that answers with JSON text. `read` gets the credential, which is not checked yet, the path's parameters
 * and the raw query ("" where there is none); it returns `undefined` for requests that it does not handle. Where it
 * fails, the ordinary path runs the request again and answers, except for a refused credential. The account's limits
 * are applied first.
 */
export const hotRead = (
  principals: Principals["Service"],
  limits: Accounts,
  read: (
    credential: Credential["Service"],
    params: Readonly<Record<string, string | undefined>>,
    query: string,
  ) => Effect.Effect<string, InvalidCredentials | { readonly _tag: string }> | undefined,
): HotRead =>
(request, params) => {
  const { accept, authorization } = request.headers
  if (authorization === undefined || !accepts(accept, json)) return Effect.succeed(undefined)
  const at = request.url.indexOf("?")
  return Effect.flatMap(principals.present({ authorization, cookie: undefined }), (credential) => {
    const found = read(credential, params, at < 0 ? "" : request.url.slice(at + 1))
    if (found === undefined) return Effect.succeed(undefined)
    const answered = Effect.matchEffect(found, {
      onSuccess: (body) => Effect.succeed(HttpServerResponse.text(body, { contentType: "application/json" })),
      onFailure: (error) => {
        if (error._tag === "InvalidCredentials") {
          limits.forget(credential)
          return Effect.fail(error as InvalidCredentials)
        }
        limits.counted(request)
        return Effect.succeed(undefined)
      },
    })
    return Effect.flatMap(
      limits.countFor(credential, request),
      (beyond): Effect.Effect<HttpServerResponse.HttpServerResponse | undefined, InvalidCredentials | RateLimited> =>
        beyond === undefined ? answered : Effect.fail(beyond),
    )
  })
}
