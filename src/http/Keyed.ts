/**
 * A command of the identity API and its answer, under the request's idempotency key where it has one: done once, and
 * answered with the same bytes each time, with `Idempotency-Replayed: true` from the second time on.
 *
 * `keyed({ principal, payload, status: 201, success: Receipt }, service.propose(…))` in a handler gives the response.
 * The key itself is decoded by the contract (`keyed` or `optionallyKeyed` of schemas/identity/IdempotencyKey.ts).
 */
import { Effect, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Idempotency } from "../../services/platform/Idempotency.ts"

export interface Keyed<A, I> {
  /** Whose key it is: the caller's `principal`. */
  readonly principal: string
  /** The decoded body; undefined where the operation has none. */
  readonly payload: unknown
  readonly status: number | ((result: A) => number)
  readonly success: Schema.Codec<A, I>
  /** What the receipt holds in place of the result where that must be less: secrets are told once. */
  readonly keep?: (result: A) => A
  /** Headers made of the answer's body, for example its ETag. */
  readonly headers?: (body: I) => Readonly<Record<string, string>>
}

const pathOf = (url: string) => (url.split("?", 1)[0] ?? url).replace(/\/+$/, "")

/** Runs `command` in one transaction with its receipt. It must not be run by anything else. */
export const keyed = Effect.fnUntraced(function* <A, I, E, R>(how: Keyed<A, I>, command: Effect.Effect<A, E, R>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const encode = Schema.encodeSync(how.success)
  const text = (result: A) => JSON.stringify(encode(result))
  const { keep } = how
  const answer = yield* (yield* Idempotency).run(
    {
      principal: how.principal,
      method: request.method,
      path: pathOf(request.url),
      key: request.headers["idempotency-key"] ?? null,
      body: how.payload,
      ifMatch: request.headers["if-match"],
      portalBinding: request.headers["x-portal-binding"],
    },
    {
      status: how.status,
      encode: text,
      ...(keep === undefined ? {} : { keep: (result: A) => text(keep(result)) }),
    },
    command,
  )
  return HttpServerResponse.text(answer.body, {
    status: answer.status,
    contentType: "application/json",
    headers: {
      ...(how.headers?.(JSON.parse(answer.body) as I) ?? {}),
      ...(answer.replayed ? { "idempotency-replayed": "true" } : {}),
    },
  })
})
