/**
 * Maps an endpoint's failure to its answer: the endpoint's own Problem, 503 where a dependency is away, and otherwise
 * 500 without internal details.
 */
import { Cause, Effect } from "effect"
import { HttpServerError, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { SqlError } from "effect/sql"
import {
  BodyTooLarge,
  DependencyUnavailable,
  Internal,
  MalformedRequest,
  MethodNotAllowed,
  NotAcceptable,
  NotFound,
  UnsupportedMediaType,
} from "../../../schemas/problems/HttpProblems.ts"

export interface Answer {
  readonly response: HttpServerResponse.HttpServerResponse
  /** The cause to log; undefined where the client caused the failure. */
  readonly cause: Cause.Cause<unknown> | undefined
}

export const respond = (problem: HttpServerRespondable.Respondable) =>
  Effect.orDie(HttpServerRespondable.toResponse(problem))

const away = new Set([
  "ConnectionError",
  "AuthenticationError",
  "LockTimeoutError",
  "StatementTimeoutError",
  "DeadlockError",
  "SerializationError",
])
/**
 * SQLSTATEs of a PostgreSQL that cannot be used now: it is stopping, starting, or closed all connections because one
 * crashed (57P); it lacks connections, memory or disk space (53); its disk fails (58); it is read-only, as before a
 * fail-over promotes it (25006); it ended the transaction of a process that stood still (25P03).
 */
const unusable = /^(?:57P0[0-9A-Z]|5[38][0-9A-Z]{3}|25006|25P03)$/
const cut = new Set(["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EPIPE", "ENOTFOUND"])

const member = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined

/** Whether a failure comes from a database or another dependency that cannot be reached or is too slow. */
export const isAway = (error: unknown, depth = 0): boolean => {
  if (depth > 6 || typeof error !== "object" || error === null) return false
  if (SqlError.isSqlError(error) && away.has(error.reason._tag)) return true
  const code = String(member(error, "code"))
  return cut.has(code) || unusable.test(code) || isAway(member(error, "cause"), depth + 1) ||
    isAway(member(error, "reason"), depth + 1)
}

const ofError = (error: unknown): HttpServerRespondable.Respondable | undefined => {
  if (HttpServerError.isHttpServerError(error)) {
    const { reason } = error
    if (reason._tag === "RouteNotFound") return new NotFound({})
    if (reason._tag !== "RequestParseError") return undefined
    return reason.reason === "BodyTooLarge" ? new BodyTooLarge({}) : new MalformedRequest({})
  }
  if (HttpApiError.HttpApiSchemaError.is(error)) {
    return error.kind === "Body" || error.kind === "ResponseHeaders" ? undefined : new MalformedRequest({})
  }
  if (HttpApiError.HttpApiPayloadTooLarge.is(error)) return new BodyTooLarge({})
  return undefined
}

/**
 * Turns the cause of a failed endpoint into its answer. Where the client has disconnected, fails with the same cause.
 */
export const answer = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  const errors = cause.reasons.flatMap((reason) =>
    reason._tag === "Fail" ? [reason.error] : reason._tag === "Die" ? [reason.defect] : []
  )
  if (errors.length === 0) {
    const gone = cause.reasons.some((reason) => reason.annotations.has(HttpServerError.ClientAbort.key))
    if (gone) return yield* Effect.failCause(cause)
    const problem = new DependencyUnavailable({ detail: "The server is stopping" })
    return { response: yield* respond(problem), cause: undefined } satisfies Answer
  }
  const ready = errors.find(HttpServerResponse.isHttpServerResponse)
  if (ready) return { response: ready, cause: undefined } satisfies Answer
  const known = errors.map(ofError).find((problem) => problem !== undefined)
  if (known) return { response: yield* respond(known), cause: undefined } satisfies Answer
  if (errors.some((error) => isAway(error))) {
    return { response: yield* respond(new DependencyUnavailable({})), cause } satisfies Answer
  }
  // Only a failure is an answer for the client. A defect that could answer (a failed encoding) is still a fault of
  // ours.
  const [failure] = cause.reasons.flatMap((reason) => reason._tag === "Fail" ? [reason.error] : [])
  if (failure !== undefined && HttpServerRespondable.isRespondable(failure)) {
    return { response: yield* respond(failure), cause: undefined } satisfies Answer
  }
  return { response: yield* respond(new Internal({})), cause } satisfies Answer
})

const bare: Readonly<Record<number, () => HttpServerRespondable.Respondable>> = {
  400: () => new MalformedRequest({}),
  404: () => new NotFound({}),
  405: () => new MethodNotAllowed({}),
  406: () => new NotAcceptable({}),
  413: () => new BodyTooLarge({}),
  415: () => new UnsupportedMediaType({}),
  500: () => new Internal({}),
  503: () => new DependencyUnavailable({}),
}

/** Gives a refusal without a body the problem of its status. */
export const dressed = (response: HttpServerResponse.HttpServerResponse) => {
  const problem = response.body._tag === "Empty" ? bare[response.status] : undefined
  return problem === undefined ? Effect.succeed(response) : respond(problem())
}
