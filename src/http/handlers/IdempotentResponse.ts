/**
 * Runs a command of the identity API under the request's idempotency key, where it has one: the command runs once, and
 * every repetition is answered with the same bytes and `Idempotency-Replayed: true`.
 *
 * `keyed({ principal, payload, status: 201, success: Receipt }, service.propose(…))` in a handler returns the response.
 * The contract decodes the key (`keyed` or `optionallyKeyed` of schemas/identity/IdempotencyKey.ts).
 */
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { type Fenced, NotAdmitted } from "../../../services/platform/database/FencedCommand.ts"
import {
  type Answer,
  type AnswerForm,
  type Asked,
  Idempotency,
} from "../../../services/platform/security/Idempotency.ts"
import * as Routes from "../edge/Routes.ts"
import { Presumption } from "../auth/Presumption.ts"

export interface IdempotentResponse<A, I> {
  /** The owner of the key: the caller's `principal`. */
  readonly principal: string
  /** The decoded body; undefined where the operation has none. Requests are compared by the body as it was sent. */
  readonly payload: unknown
  readonly status: number | ((result: A) => number)
  readonly success: Schema.Codec<A, I>
  /** The text in the receipt's path in place of secret parameters: tokens. */
  readonly named?: Readonly<Record<string, string>>
  /** The result as the receipt keeps it, without secrets, which are shown only once. */
  readonly keep?: (result: A) => A
  /** Whether the command is only decided (services/platform/security/Idempotency.ts): the answer is 204. */
  readonly dryRun?: boolean | undefined
  /** Headers made from the answer's body, for example its ETag. */
  readonly headers?: (body: I) => Readonly<Record<string, string>>
}

/** Request validation has read the body and found it to be JSON, or absent where the operation needs none. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.map(Effect.orDie(request.text), (text) => text === "" ? undefined : JSON.parse(text) as unknown)

const asked = Effect.fnUntraced(function* <A, I>(how: IdempotentResponse<A, I>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { params, route } = yield* HttpRouter.RouteContext
  return {
    principal: how.principal,
    method: request.method,
    path: Routes.pathOf(route.path, { ...params, ...how.named }),
    key: request.headers["idempotency-key"] ?? null,
    body: how.payload === undefined ? undefined : yield* bodyOf(request),
    ifMatch: request.headers["if-match"],
    portalBinding: request.headers["x-portal-binding"],
    dryRun: how.dryRun,
  } satisfies Asked
})

const formOf = <A, I>({ keep, status, success }: IdempotentResponse<A, I>): AnswerForm<A> => {
  const encode = Schema.encodeSync(success)
  const text = (result: A) => JSON.stringify(encode(result))
  return { status, encode: text, ...(keep === undefined ? {} : { keep: (result: A) => text(keep(result)) }) }
}

const responseOf = <A, I>(how: IdempotentResponse<A, I>, answer: Answer) =>
  answer.status === 204 ? HttpServerResponse.empty() : HttpServerResponse.text(answer.body, {
    status: answer.status,
    contentType: "application/json",
    headers: {
      ...(how.headers?.(JSON.parse(answer.body) as I) ?? {}),
      ...(answer.replayed ? { "idempotency-replayed": "true" } : {}),
    },
  })

/** Runs `command` in one transaction with its receipt; nothing else may run `command`. */
export const keyed = Effect.fnUntraced(
  function* <A, I, E, R>(how: IdempotentResponse<A, I>, command: Effect.Effect<A, E, R>) {
    return responseOf(how, yield* (yield* Idempotency).run(yield* asked(how), formOf(how), command))
  },
)

/**
 * `keyed` for a command that has a transaction of its own, which a receipt's transaction then encloses. A request
 * without a key runs the command as it is.
 */
export const keyedAround = Effect.fnUntraced(
  function* <A, I, E, R>(how: IdempotentResponse<A, I>, command: Effect.Effect<A, E, R>) {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    if (headers["idempotency-key"] !== undefined) return yield* keyed(how, command)
    const { encode, status } = formOf(how)
    const result = yield* command
    const answer = { status: typeof status === "number" ? status : status(result), body: encode(result) }
    return responseOf(how, { ...answer, replayed: false })
  },
)

const answerOf = (refusal: object) => refusal instanceof NotAdmitted ? refusal.answer : refusal

/**
 * `keyed` for a command of two round trips (FencedCommand.ts). Commands with the same `turn` run one after another in a
 * process; the default is the path. `refused` makes the problem for a write that fails because of the request's
 * content.
 */
export const keyedFenced = Effect.fnUntraced(function* <A, I, E, R, F = never>(
  how: IdempotentResponse<A, I> & Partial<Pick<Fenced<F>, "turn" | "refused">>,
  command: Effect.Effect<A, E, R>,
) {
  const { refused, turn } = how
  const presumed = yield* Presumption
  const admissions = presumed === null ? [] : [presumed.admission]
  const request = { ...(yield* asked(how)), ...(turn === undefined ? {} : { turn }), refused, admissions }
  const answered = (yield* Idempotency).fenced(request, formOf(how), command)
  // `byCommand` in ManagementAuth.ts, which presumed the caller, handles this defect.
  return responseOf(how, yield* Effect.catchTag(answered, "NotAdmitted", (refusal) => Effect.die(answerOf(refusal))))
})

/**
 * `keyed` for a command that `asking` makes outside of any transaction. A request that was answered before does not run
 * `asking`.
 */
export const keyedAfter = Effect.fnUntraced(function* <A, I, E, R, E2, R2>(
  how: IdempotentResponse<A, I>,
  asking: Effect.Effect<Effect.Effect<A, E, R>, E2, R2>,
) {
  return responseOf(how, yield* (yield* Idempotency).runAfter(yield* asked(how), formOf(how), asking))
})

/**
 * `keyed` for a command that an actor runs: `command` gets the receipt to send with it. A request that was answered before
 * does not run it.
 */
export const keyedByActor = Effect.fnUntraced(function* <A, I, E, R>(
  how: IdempotentResponse<A, I> & { readonly status: number },
  command: (receipt: PendingReceipt | null) => Effect.Effect<A, E, R>,
) {
  const form = { ...formOf(how), status: how.status }
  return responseOf(how, yield* (yield* Idempotency).handedOn(yield* asked(how), form, command))
})
