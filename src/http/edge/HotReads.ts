/**
 * Reads that are asked for all the time, by template: past the router and the contract's decoders, which cost about as
 * much as the read itself, though inside the floor like everything else. Such a read knows the plain request, a key and
 * what queries are usually made of; for any other it gives `undefined`, and the request goes the ordinary way.
 */
import { Context, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Credential } from "../../../schemas/api/Credentials.ts"
import type { DependencyUnavailable, InvalidCredentials, RateLimited } from "../../../schemas/problems/Floor.ts"
import type { InvalidToken } from "../../../schemas/problems/Identity.ts"
import type { Principals } from "../../../services/authentication/Principals.ts"
import type { Accounts } from "../auth/Limits.ts"
import { accepts } from "./Media.ts"

export type HotRead = (
  request: HttpServerRequest.HttpServerRequest,
  params: Readonly<Record<string, string | undefined>>,
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse | undefined,
  InvalidCredentials | InvalidToken | RateLimited | DependencyUnavailable
>

export class HotReads
  extends Context.Reference<Map<string, HotRead>>("bailiwick/http/edge/HotReads", { defaultValue: () => new Map() }) {}

/** What hot reads answer with. */
export const json = new Set(["application/json"])

/**
 * A read that answers with JSON text. `read` gets the credential, which nobody has checked yet, the path's parameters and
 * the query as it was written ("" where there is none); it gives `undefined` for what it does not know, and what it
 * fails with is told in the ordinary way, except for a refused credential. The account's limits come first.
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
