/**
 * A command of the identity API and its answer, under the request's idempotency key where it has one: done once, and
 * answered with the same bytes each time, with `Idempotency-Replayed: true` from the second time on.
 *
 * `keyed({ principal, payload, status: 201, success: Receipt }, service.propose(…))` in a handler gives the response.
 * The key itself is decoded by the contract (`keyed` or `optionallyKeyed` of schemas/identity/IdempotencyKey.ts).
 */
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Fenced, NotAdmitted } from "../../../services/platform/database/FencedCommand.ts"
import { type Answer, type Asked, Idempotency, type Told } from "../../../services/platform/security/Idempotency.ts"
import * as Routes from "../edge/Routes.ts"
import { Presumption } from "../auth/Presumption.ts"

export interface Keyed<A, I> {
  /** Whose key it is: the caller's `principal`. */
  readonly principal: string
  /** The decoded body; undefined where the operation has none. Whether a request is the same goes by what was sent. */
  readonly payload: unknown
  readonly status: number | ((result: A) => number)
  readonly success: Schema.Codec<A, I>
  /** What the receipt holds in place of the result where that must be less: secrets are told once. */
  readonly keep?: (result: A) => A
  /** Headers made of the answer's body, for example its ETag. */
  readonly headers?: (body: I) => Readonly<Record<string, string>>
}

/** The floor has read the body, and found it to be JSON. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.map(Effect.orDie(request.text), (text) => JSON.parse(text) as unknown)

const asked = Effect.fnUntraced(function* <A, I>(how: Keyed<A, I>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { params, route } = yield* HttpRouter.RouteContext
  return {
    principal: how.principal,
    method: request.method,
    path: Routes.pathOf(route.path, params),
    key: request.headers["idempotency-key"] ?? null,
    body: how.payload === undefined ? undefined : yield* bodyOf(request),
    ifMatch: request.headers["if-match"],
    portalBinding: request.headers["x-portal-binding"],
  } satisfies Asked
})

const told = <A, I>({ keep, status, success }: Keyed<A, I>): Told<A> => {
  const encode = Schema.encodeSync(success)
  const text = (result: A) => JSON.stringify(encode(result))
  return { status, encode: text, ...(keep === undefined ? {} : { keep: (result: A) => text(keep(result)) }) }
}

const responseOf = <A, I>(how: Keyed<A, I>, answer: Answer) =>
  HttpServerResponse.text(answer.body, {
    status: answer.status,
    contentType: "application/json",
    headers: {
      ...(how.headers?.(JSON.parse(answer.body) as I) ?? {}),
      ...(answer.replayed ? { "idempotency-replayed": "true" } : {}),
    },
  })

/** Runs `command` in one transaction with its receipt. It must not be run by anything else. */
export const keyed = Effect.fnUntraced(function* <A, I, E, R>(how: Keyed<A, I>, command: Effect.Effect<A, E, R>) {
  return responseOf(how, yield* (yield* Idempotency).run(yield* asked(how), told(how), command))
})

const answerOf = (refusal: object) => refusal instanceof NotAdmitted ? refusal.answer : refusal

/**
 * The same for a command of two round trips (FencedCommand.ts). `turn` names what such commands meet about, the path where
 * nothing is said; `refused`, what the caller is told where the write fails because of what was sent.
 */
export const keyedFenced = Effect.fnUntraced(function* <A, I, E, R, F = never>(
  how: Keyed<A, I> & Partial<Pick<Fenced<F>, "turn" | "refused">>,
  command: Effect.Effect<A, E, R>,
) {
  const { refused, turn } = how
  const presumed = yield* Presumption
  const admissions = presumed === null ? [] : [presumed.admission]
  const request = { ...(yield* asked(how)), ...(turn === undefined ? {} : { turn }), refused, admissions }
  const answered = (yield* Idempotency).fenced(request, told(how), command)
  // Whoever presumed the caller takes it from here.
  return responseOf(how, yield* Effect.catchTag(answered, "NotAdmitted", (refusal) => Effect.die(answerOf(refusal))))
})

/** The same where `asking`, in no transaction, gives the command: it is not asked for what was answered already. */
export const keyedAfter = Effect.fnUntraced(function* <A, I, E, R, E2, R2>(
  how: Keyed<A, I>,
  asking: Effect.Effect<Effect.Effect<A, E, R>, E2, R2>,
) {
  return responseOf(how, yield* (yield* Idempotency).runAfter(yield* asked(how), told(how), asking))
})
